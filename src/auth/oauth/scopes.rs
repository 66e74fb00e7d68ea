//! Scopes: permissions as clients ask for them.

use crate::{
    auth::scope_of,
    types::{Permission, PermissionSet},
};

/// Prefix of the scopes of permissions.
const PREFIX: &str = "jupyter:";
/// Permissions of a client that asks for none in particular.
const DEFAULT: [Permission; 3] = [Permission::Read, Permission::Write, Permission::Execute];

/// The permissions that a scope names. Others are somebody else's, as `offline_access` is.
pub(super) fn permissions(scope: &str) -> PermissionSet {
    let named = scope.split_whitespace().filter_map(|scope| scope.strip_prefix(PREFIX));
    named.filter_map(Permission::parse).collect()
}

/// The scope of several permissions.
pub(super) fn scopes(permissions: PermissionSet) -> String {
    permissions.iter().map(scope_of).collect::<Vec<_>>().join(" ")
}

/// The permissions that a client asks for. `None` if it asks only for what there is not.
pub(super) fn requested(scope: Option<&str>) -> Option<PermissionSet> {
    let Some(scope) = scope else {
        return Some(DEFAULT.into_iter().collect());
    };
    let asked = permissions(scope);
    (asked != PermissionSet::default()).then_some(asked)
}

/// All scopes there are.
pub(super) fn supported() -> Vec<&'static str> {
    Permission::ALL.map(scope_of).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_permissions() {
        let all = scopes(PermissionSet::all());
        assert_eq!(all, "jupyter:read jupyter:write jupyter:execute jupyter:admin");
        assert_eq!(permissions(&all), PermissionSet::all());
        let asked = requested(Some("openid jupyter:read offline_access")).expect("one");
        assert_eq!(scopes(asked), "jupyter:read");
        assert!(requested(Some("openid")).is_none());
        assert!(requested(None).is_some_and(|asked| !asked.contains(Permission::Admin)));
    }
}
