//! Owns the one-line-per-key notation of the sections, so that a key's type, default and reading
//! stand together and cannot drift apart.

/// Makes a struct, its `Default` and its `Section` from lines of
/// `key: Type = default, how(parser or range);`, where `how` is a method of `Reader`.
macro_rules! section {
    (
        $(#[$about:meta])*
        $name:ident $([$rule:ident($keys:expr)])? {
            $($(#[$doc:meta])* $key:ident: $ty:ty = $default:expr, $how:ident($arg:expr);)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $key: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $crate::config::reader::Section for $name {
            fn read(reader: &mut $crate::config::reader::Reader<'_>) -> Self {
                $(reader.$rule(&$keys);)?
                let default = Self::default();
                Self { $($key: reader.$how(stringify!($key), default.$key, $arg),)* }
            }

            fn compare(&self, other: &Self, path: &str, changed: &mut Vec<String>) {
                let mut comparison = $crate::config::changes::Comparison::new(path, changed);
                $(comparison.value(stringify!($key), &self.$key, &other.$key);)*
            }
        }
    };
}

pub(super) use section;
