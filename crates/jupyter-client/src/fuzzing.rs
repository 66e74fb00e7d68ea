//! Entry points for input that comes from elsewhere, for the fuzz targets and, for a moment, for property tests. Only there
//! in builds for these.

use bytes::Bytes;

use crate::{DocPath, is_shallow_json, kernel, urls::document_of};

/// Frames of a kernel's socket, in both framings.
pub fn kernel_frame(data: &[u8]) {
    kernel::decode_any(&Bytes::copy_from_slice(data));
    let _ = is_shallow_json(data);
}

/// A path as callers write it, in every spelling.
pub fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for path in [DocPath::parse(text), DocPath::parse_file(text)].into_iter().flatten() {
        // What has been parsed is spelled as it stays.
        assert_eq!(DocPath::parse(path.as_str()).as_ref(), Ok(&path));
        assert!(path.as_str().split('/').all(|name| name != "..") && !path.as_str().starts_with('/'));
        let _ = path.decoded();
    }
}

/// A notebook's URL from a browser.
pub fn notebook_url(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        document_of(text);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use proptest::prelude::*;

    type Target = fn(&[u8]);

    #[test]
    fn what_was_found_before_is_no_panic() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
        let targets: [(&str, Target); 3] = [
            ("kernel_frame", super::kernel_frame),
            ("path", super::path),
            ("notebook_url", super::notebook_url),
        ];
        for (target, run) in targets {
            for seed in fs::read_dir(seeds.join(target)).unwrap() {
                run(&fs::read(seed.unwrap().path()).unwrap());
            }
        }
    }

    proptest! {
        #[test]
        fn no_kernel_frame_is_a_panic(data in prop::collection::vec(any::<u8>(), 0..300)) {
            super::kernel_frame(&data);
        }

        #[test]
        fn no_path_leaves_its_bounds(text in "(\\.|/|\\\\|%2[eEfF]|%[0-9a-f]{2}|[a-z]|\\PC){0,40}") {
            super::path(text.as_bytes());
        }

        #[test]
        fn no_url_is_a_panic(text in "(https?://[a-z.:@\\[\\]0-9]{0,20})?(/|lab|tree|notebooks|%2F|\\?|#|\\PC){0,20}") {
            super::notebook_url(text.as_bytes());
        }
    }
}
