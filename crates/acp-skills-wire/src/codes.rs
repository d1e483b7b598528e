//! Error codes of JSON-RPC and of ACP.

/// JSON-RPC: an internal error.
pub const INTERNAL_ERROR: i64 = -32603;
/// JSON-RPC: an invalid request, or one that is not allowed in this state.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: invalid parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// ACP: the request was cancelled by `$/cancel_request`.
pub const REQUEST_CANCELLED: i64 = -32800;
/// ACP: a resource such as a file was not found.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// ACP: the client must authenticate first.
pub const AUTH_REQUIRED: i64 = -32000;
/// The proxy's own code: the agent or the proxy did not start. It is in the range that JSON-RPC reserves for implementations. Use
/// it instead of [`INTERNAL_ERROR`], because clients hide the message of an internal error.
pub const NOT_STARTED: i64 = -32099;
