//! Browser logins, end to end: a real OpenID provider or JupyterHub, a browser that is driven by plain HTTP, and clients of several
//! makes, which get tokens of the gateway and lose them again.

mod browser;
mod changes;
mod clients;
mod codes;
mod documents;
mod hub;
mod logins;
mod page;
mod side_by_side;
mod site;
mod stage;
mod tokens;

use self::{
    browser::{Browser, Page},
    site::{ALL, CALLBACK, Client, Site},
    stage::Stage,
};
