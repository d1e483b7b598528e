//! Error codes of JSON-RPC and of ACP.

/// JSON-RPC: an internal error.
pub const INTERNAL_ERROR: i64 = -32603;
/// JSON-RPC: no valid request, or not now.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: invalid parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// ACP: the request was cancelled by `$/cancel_request`.
pub const REQUEST_CANCELLED: i64 = -32800;
/// ACP: the client must authenticate first.
pub const AUTH_REQUIRED: i64 = -32000;
/// Ours, of those that JSON-RPC leaves to implementations: the agent or the proxy in front of it did not start. Clients hide
/// what an internal error says, and take others of these for what ACP means by them.
pub const NOT_STARTED: i64 = -32099;
