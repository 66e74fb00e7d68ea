//! Why a room cannot be had.

use crate::{
    error::{ClientError, ErrorKind},
    jupyter::room::RoomError,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(
        "{limit} documents are open and all in use, which is the limit {whose}; end one with end_nb_session or try again later"
    )]
    Full { limit: usize, whose: &'static str },
}

impl ClientError for PoolError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Room(error) => error.kind(),
            Self::Full { .. } => ErrorKind::Limit,
        }
    }
}
