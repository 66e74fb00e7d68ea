//! The tenants of the config, which can be replaced while the gateway runs.

use std::{collections::HashMap, sync::Arc};

use parking_lot::RwLock;

use super::{PathRules, Tenant};
use crate::{
    config::{Config, Review, TenantConfig},
    types::{PermissionSet, Toolset},
};

pub(super) type TenantsByName = HashMap<String, Arc<Tenant>>;

/// The tenants as they are at this moment, for methods whose principals name one.
#[derive(Debug, Default)]
pub struct Tenants(RwLock<Arc<TenantsByName>>);

impl Tenants {
    pub fn get(&self, name: &str) -> Option<Arc<Tenant>> {
        self.0.read().get(name).cloned()
    }

    pub(super) fn replace(&self, tenants: TenantsByName) {
        *self.0.write() = Arc::new(tenants);
    }
}

/// The tenants of a validated config.
pub(super) fn tenants(config: &Config) -> Result<TenantsByName, globset::Error> {
    let tenant = |tenant: &TenantConfig| Ok((tenant.name.clone(), Arc::new(tenant_from(tenant, config)?)));
    config.all_tenants().iter().map(tenant).collect()
}

pub(super) fn tenant_from(tenant: &TenantConfig, config: &Config) -> Result<Tenant, globset::Error> {
    let servers = config
        .servers_of(tenant)
        .into_iter()
        .map(|server| server.name.clone())
        .collect();
    let toolsets = Toolset::parse_list(tenant.toolsets.iter().map(String::as_str)).unwrap_or_default();
    Ok(Tenant {
        name: tenant.name.clone(),
        servers,
        connect_urls: tenant.connect_urls.clone(),
        permissions: tenant.permissions.iter().copied().collect::<PermissionSet>(),
        paths: PathRules::new(&tenant.paths)?,
        toolsets,
        max_open_rooms: tenant.max_open_rooms,
        max_concurrent_executions: tenant.max_concurrent_executions,
        review_required: tenant.review == Review::Required,
    })
}
