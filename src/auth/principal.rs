//! The caller of one request: a name that people see, a tenant, and what both may do.

use std::{sync::Arc, time::SystemTime};

use executor::Owner;
use jupyter_client::DocPath;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{ApprovalRules, HubAccount, NotFullyAllowed, PathRules};
use crate::types::{Permission, PermissionSet, Toolset};

/// A group of tokens with its servers and upper bounds.
#[derive(Debug)]
pub struct Tenant {
    pub name: String,
    /// Names of configured servers; the first is the default.
    pub servers: Vec<String>,
    /// Base URLs of other servers that agents may connect to, each ending with a slash.
    pub connect_urls: Vec<Url>,
    pub permissions: PermissionSet,
    pub paths: PathRules,
    /// Empty: the default set, and clients may select any other.
    pub toolsets: Vec<Toolset>,
    pub max_open_rooms: usize,
    pub max_concurrent_executions: usize,
    /// True if edits of agents go to a fork that somebody else merges.
    pub review_required: bool,
    /// Calls that a person must allow.
    pub approvals: ApprovalRules,
}

#[derive(Debug)]
pub struct Principal {
    /// Issuer and subject, unique among all principals; sessions, events and executions are bound to it.
    pub id: Arc<str>,
    /// Display name, as collaborators see it.
    pub name: String,
    pub tenant: Arc<Tenant>,
    /// Permissions in its credentials, before its tenant narrows them.
    granted: PermissionSet,
    permissions: PermissionSet,
    paths: PathRules,
    /// Its own servers in the place of its tenant's.
    servers: Option<Arc<[String]>>,
    /// Account in a JupyterHub, if it is a user of one.
    hub: Option<Arc<HubAccount>>,
    expires_at: Option<SystemTime>,
    /// Permissions that its client can ask for by logging in again; none if there is nothing to log in to.
    obtainable: PermissionSet,
    /// The client wanted no more than to read.
    only_reads: bool,
    /// Shared by all that stands for the same credentials.
    validity: Arc<CancellationToken>,
}

/// A refusal that names the rule behind it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    #[error("this needs permission `{needed}`, and {name:?} has only: {has}; ask an operator to grant it")]
    Permission {
        needed: Permission,
        name: String,
        has: String,
    },
    #[error("this needs permission `{needed}`, and the connection is read-only; connect without readonly=true")]
    ReadOnly { needed: Permission },
    #[error("path {path:?} is outside the path rules of {name:?}; ask an operator to allow it")]
    Path { path: String, name: String },
    #[error(
        "directory {path:?} cannot be moved or deleted as a whole: {why} (path rules of {name:?}); move or delete the allowed files in it one by one"
    )]
    Tree { path: String, why: String, name: String },
}

impl AccessError {
    /// The missing permission, or the kind of rule that forbids it.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Permission { needed, .. } => needed.as_str(),
            Self::ReadOnly { .. } => "readonly",
            Self::Path { .. } | Self::Tree { .. } => "paths",
        }
    }
}

impl Principal {
    pub fn new(id: &str, name: &str, tenant: Arc<Tenant>, permissions: PermissionSet, paths: PathRules) -> Self {
        Self {
            id: id.into(),
            name: name.to_owned(),
            granted: permissions,
            // The tenant is an upper bound, whatever its tokens say.
            permissions: permissions.intersection(tenant.permissions),
            tenant,
            paths,
            servers: None,
            hub: None,
            expires_at: None,
            obtainable: PermissionSet::default(),
            only_reads: false,
            validity: Arc::default(),
        }
    }

    /// The same, whose client can log in again for these permissions.
    pub fn that_can_ask_for(self, permissions: PermissionSet) -> Self {
        Self {
            obtainable: permissions,
            ..self
        }
    }

    /// Another one with no more than these permissions, whose credentials hold for themselves.
    pub fn narrowed_to(&self, permissions: PermissionSet) -> Self {
        Self {
            granted: self.granted.intersection(permissions),
            permissions: self.permissions.intersection(permissions),
            validity: Arc::default(),
            ..self.copy()
        }
    }

    /// The same, until its credentials expire.
    pub fn expiring_at(self, expires_at: SystemTime) -> Self {
        Self {
            expires_at: Some(expires_at),
            ..self
        }
    }

    /// The same, on these servers in the place of its tenant's.
    pub fn on_servers(self, servers: Vec<String>) -> Self {
        Self {
            servers: Some(servers.into()),
            ..self
        }
    }

    /// The same with what it has in a JupyterHub beyond these servers.
    pub fn with_hub(self, account: HubAccount) -> Self {
        Self {
            hub: Some(Arc::new(account)),
            ..self
        }
    }

    /// The account in a JupyterHub.
    pub fn hub(&self) -> Option<&Arc<HubAccount>> {
        self.hub.as_ref()
    }

    /// Names those who may know of each other without meeting in a document: the tenant, and of a Hub's users each
    /// alone.
    pub fn circle(&self) -> &str {
        match self.hub {
            Some(_) => &self.id,
            None => &self.tenant.name,
        }
    }

    /// Names of the servers that it may use, its default first.
    pub fn servers(&self) -> &[String] {
        self.servers.as_deref().unwrap_or(&self.tenant.servers)
    }

    /// The time at which its credentials expire, if they do.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.expires_at
    }

    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// Returns whether its credentials expire later than those of another one.
    pub fn outlasts(&self, other: &Self) -> bool {
        match (self.expires_at, other.expires_at) {
            (Some(own), Some(others)) => own > others,
            (None, Some(_)) => true,
            (_, None) => false,
        }
    }

    /// The principal as the owner of what it runs.
    pub fn owner(&self) -> Owner {
        Owner {
            tenant: self.tenant.name.as_str().into(),
            principal: Arc::clone(&self.id),
            name: self.name.clone(),
            max_open_rooms: self.tenant.max_open_rooms,
        }
    }

    /// The same in the place of the principal that its token had before, and valid for as long as that one.
    pub(super) fn in_place_of(&self, before: &Self) -> Self {
        Self {
            validity: Arc::clone(&before.validity),
            ..self.copy()
        }
    }

    /// The same in what has become of its tenant, valid for as long as this one.
    pub(super) fn in_tenant(&self, tenant: Arc<Tenant>) -> Self {
        Self {
            permissions: self.granted.intersection(tenant.permissions),
            tenant,
            ..self.copy()
        }
    }

    fn copy(&self) -> Self {
        Self {
            id: Arc::clone(&self.id),
            name: self.name.clone(),
            tenant: Arc::clone(&self.tenant),
            granted: self.granted,
            permissions: self.permissions,
            paths: self.paths.clone(),
            servers: self.servers.clone(),
            hub: self.hub.clone(),
            expires_at: self.expires_at,
            obtainable: self.obtainable,
            only_reads: self.only_reads,
            validity: Arc::clone(&self.validity),
        }
    }

    /// Returns whether it has all rights of another one.
    pub fn includes_rights_of(&self, before: &Self) -> bool {
        let (tenant, former) = (&self.tenant, &before.tenant);
        self.id == before.id
            && tenant.name == former.name
            && self.permissions.intersection(before.permissions) == before.permissions
            && self.paths == before.paths
            && tenant.paths == former.paths
            && (former.review_required || !tenant.review_required)
            && (tenant.approvals == former.approvals || tenant.approvals.is_empty())
            && tenant.toolsets == former.toolsets
            && match (&self.hub, &before.hub) {
                (Some(now), Some(before)) => now.reaches_all_of(before),
                (None, Some(_)) => false,
                (_, None) => true,
            }
            && before.servers().iter().all(|server| self.servers().contains(server))
            && former.connect_urls.iter().all(|url| tenant.connect_urls.contains(url))
    }

    /// Cancelled when its token is removed, expires or may do less than before. Whatever goes on in its name ends then, sessions
    /// and streams included.
    pub fn revoked(&self) -> &CancellationToken {
        &self.validity
    }

    /// Returns whether something else stands for the same credentials: a request, a stream, a session.
    pub(super) fn is_in_use(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1 || Arc::strong_count(&self.validity) > 1
    }

    /// The same principal on a connection that only reads.
    pub fn only_reading(&self) -> Self {
        Self {
            permissions: self.permissions.intersection([Permission::Read].into_iter().collect()),
            only_reads: true,
            obtainable: PermissionSet::default(),
            ..self.copy()
        }
    }

    pub fn permissions(&self) -> PermissionSet {
        self.permissions
    }

    /// The permissions to log in for again, if something is missing of what is needed and that would give it.
    pub fn step_up(&self, needed: PermissionSet) -> Option<PermissionSet> {
        let has_all = needed.intersection(self.permissions) == needed;
        let all: PermissionSet = self.permissions.iter().chain(needed.iter()).collect();
        let obtainable = self.obtainable.intersection(self.tenant.permissions);
        let is_obtainable = needed
            .iter()
            .all(|needed| self.permissions.contains(needed) || obtainable.contains(needed));
        (!has_all && is_obtainable).then_some(all)
    }

    pub fn require(&self, needed: Permission) -> Result<(), AccessError> {
        if self.permissions.contains(needed) {
            return Ok(());
        }
        if self.only_reads {
            return Err(AccessError::ReadOnly { needed });
        }
        let has: Vec<&str> = self.permissions.iter().map(Permission::as_str).collect();
        Err(AccessError::Permission {
            needed,
            name: self.name.clone(),
            has: has.join(", "),
        })
    }

    pub fn may_touch(&self, path: &DocPath) -> bool {
        self.all_spellings(path, PathRules::allows)
    }

    pub fn may_enter(&self, directory: &DocPath) -> bool {
        self.all_spellings(directory, PathRules::may_enter)
    }

    /// A name with percent signs is checked as it stands and as a careless proxy would decode it.
    fn all_spellings(&self, path: &DocPath, rule: fn(&PathRules, &DocPath) -> bool) -> bool {
        let granted = |path: &DocPath| rule(&self.tenant.paths, path) && rule(&self.paths, path);
        granted(path) && path.decoded().is_none_or(|decoded| granted(&decoded))
    }

    /// Checks that a file may be touched; directories that lead to allowed files may be entered too.
    pub fn require_path(&self, path: &DocPath) -> Result<(), AccessError> {
        self.allow(path, self.may_touch(path))
    }

    pub fn require_directory(&self, directory: &DocPath) -> Result<(), AccessError> {
        self.allow(directory, self.may_enter(directory))
    }

    /// Checks that all that is or could be in a directory may be touched.
    pub fn require_tree(&self, directory: &DocPath) -> Result<(), AccessError> {
        let spellings = [Some(directory.clone()), directory.decoded()];
        for spelling in spellings.iter().flatten() {
            let covered = self
                .tenant
                .paths
                .covers(spelling)
                .and_then(|()| self.paths.covers(spelling));
            covered.map_err(|uncovered| AccessError::Tree {
                path: directory.to_string(),
                why: match uncovered {
                    NotFullyAllowed::Denied(rule) => format!("rule `{rule}` may deny something in it"),
                    NotFullyAllowed::NotAllowed => "not everything in it is allowed".to_owned(),
                },
                name: self.name.clone(),
            })?;
        }
        Ok(())
    }

    fn allow(&self, path: &DocPath, allowed: bool) -> Result<(), AccessError> {
        if allowed {
            return Ok(());
        }
        Err(AccessError::Path {
            path: path.to_string(),
            name: self.name.clone(),
        })
    }
}

/// Longest name that is shown to people.
const MAX_NAME_CHARS: usize = 100;

/// A name that somebody else gave, as people may be shown it; `fallback` if nothing is left of it.
pub fn shown_name(given: &str, fallback: &str) -> String {
    let printable = given.chars().filter(|character| !character.is_control());
    let name: String = printable.take(MAX_NAME_CHARS).collect();
    match name.trim() {
        "" => fallback.to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::tenants::tenants,
        config::{Config, Env},
    };

    #[test]
    fn who_can_log_in_again_is_told_for_what() {
        use Permission::{Admin, Execute, Read, Write};
        let text = "[[tenants]]\nname = \"t\"\npermissions = [\"read\", \"write\", \"execute\"]";
        let config = Config::from_toml(text, "test", &Env::default()).expect("a config");
        let tenant = Arc::clone(&tenants(&config).expect("tenants")["t"]);
        let rules = PathRules::new(&["**".to_owned()]).expect("rules");
        let set = |permissions: &[Permission]| permissions.iter().copied().collect::<PermissionSet>();
        let principal = || Principal::new("i|s", "ana", Arc::clone(&tenant), set(&[Read]), rules.clone());
        let own = principal();
        assert_eq!(own.step_up(set(&[Execute])), None, "there is nothing to log in to");
        let person = principal().that_can_ask_for(set(&[Read, Execute, Admin]));
        assert_eq!(person.step_up(set(&[Read])), None);
        assert_eq!(person.step_up(set(&[Execute])), Some(set(&[Read, Execute])));
        assert_eq!(person.step_up(set(&[Read, Execute])), Some(set(&[Read, Execute])));
        for (needed, why) in [(Write, "the account lacks it"), (Admin, "the tenant lacks it")] {
            assert_eq!(person.step_up(set(&[needed])), None, "{why}");
        }
        assert_eq!(person.only_reading().step_up(set(&[Execute])), None);
        let narrowed = Principal::new("i|s", "ana", Arc::clone(&tenant), PermissionSet::all(), rules.clone());
        let narrowed = narrowed.narrowed_to(set(&[Read, Admin]));
        assert_eq!(narrowed.permissions(), set(&[Read]));
        assert!(narrowed.require(Admin).is_err() && narrowed.require(Execute).is_err());
    }
}
