//! The role of an MCP server that offers skills with the catalog of rmcp.

use std::{path::PathBuf, process::ExitCode};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    handler::server::skill_catalog::SkillCatalog,
    model::{
        GetSkillRequestParams, GetSkillResult, ListResourcesResult, ListSkillsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};

/// The prefix of this role's names. The rest is the directory of the skills.
pub(crate) const PREFIX: &str = "skill catalog ";

struct Server(SkillCatalog);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_resources();
        ServerConfig::new(capabilities.enable_skills_with_directory_read().build())
    }

    async fn list_skills(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.0.reload().expect("skills");
        Ok(self.0.list_skills())
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.0.get_skill(&request.uri)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.0.resources()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.0.read_resource(&request.uri).map(Into::into);
        read.ok_or_else(|| ErrorData::resource_not_found(request.uri, None))
    }
}

/// Serves the skills in a directory until the input ends.
pub(super) fn run(dir: &str) -> ExitCode {
    let catalog = SkillCatalog::from_dir(PathBuf::from(dir)).expect("skills");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let served = Server(catalog).serve((tokio::io::stdin(), tokio::io::stdout())).await;
        if let Ok(served) = served {
            // The client ends the connection.
            let _ = served.waiting().await;
        }
    });
    ExitCode::SUCCESS
}
