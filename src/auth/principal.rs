//! The caller of one request: a name that people see, a tenant, and what both may do.

use std::sync::Arc;

use executor::Owner;
use jupyter_client::DocPath;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{ApprovalRules, NotFullyAllowed, PathRules};
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
    /// Whether edits of agents go to a fork that somebody else merges.
    pub review_required: bool,
    /// Calls that a person must allow.
    pub approvals: ApprovalRules,
}

#[derive(Debug)]
pub struct Principal {
    /// Unique among all principals; sessions, events and executions are bound to it.
    pub id: Arc<str>,
    /// Display name, as collaborators see it.
    pub name: String,
    pub tenant: Arc<Tenant>,
    permissions: PermissionSet,
    paths: PathRules,
    /// The client wanted no more than to read.
    only_reads: bool,
    revoked: CancellationToken,
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
        // The tenant is an upper bound, whatever its tokens say.
        let permissions = permissions.intersection(tenant.permissions);
        Self {
            id: id.into(),
            name: name.to_owned(),
            tenant,
            permissions,
            paths,
            only_reads: false,
            revoked: CancellationToken::new(),
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

    /// Takes the place of the principal that its token had before, and stays valid with it.
    pub(super) fn replace(&mut self, before: &Self) {
        self.revoked = before.revoked.clone();
    }

    /// Returns whether it has all rights of another one.
    pub(super) fn includes_rights_of(&self, before: &Self) -> bool {
        let (tenant, former) = (&self.tenant, &before.tenant);
        self.id == before.id
            && tenant.name == former.name
            && self.permissions.intersection(before.permissions) == before.permissions
            && self.paths == before.paths
            && tenant.paths == former.paths
            && (former.review_required || !tenant.review_required)
            && (tenant.approvals == former.approvals || tenant.approvals.is_empty())
            && tenant.toolsets == former.toolsets
            && former.servers.iter().all(|server| tenant.servers.contains(server))
            && former.connect_urls.iter().all(|url| tenant.connect_urls.contains(url))
    }

    /// Cancelled when its token is removed or may do less than before. Whatever goes on in its name ends then, sessions
    /// and streams included.
    pub fn revoked(&self) -> &CancellationToken {
        &self.revoked
    }

    /// The same principal on a connection that only reads.
    pub fn only_reading(&self) -> Self {
        Self {
            id: Arc::clone(&self.id),
            name: self.name.clone(),
            tenant: Arc::clone(&self.tenant),
            permissions: self.permissions.intersection([Permission::Read].into_iter().collect()),
            paths: self.paths.clone(),
            only_reads: true,
            revoked: self.revoked.clone(),
        }
    }

    pub fn permissions(&self) -> PermissionSet {
        self.permissions
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
