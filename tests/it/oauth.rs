//! Browser logins, end to end: a real OpenID provider, a browser that is driven by plain HTTP, and clients of several
//! makes, which get tokens of the gateway and lose them again.

mod browser;
mod clients;
mod codes;
mod documents;
mod logins;
mod side_by_side;
mod stage;
mod tokens;

use self::{
    browser::{Browser, Page},
    stage::{CALLBACK, Client, Stage},
};
