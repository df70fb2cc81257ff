// The entries that connect writes, as published schemas of MCP clients, or the types behind these, define them. These schemas
// are not copies: they have only the members that a snippet may use, and allow no others, so that a document that fits here
// also fits there. Each names its source.

const text = { type: 'string' };
const texts = { type: 'array', items: text };
const map = { type: 'object', additionalProperties: text };
const flag = { type: 'boolean' };

/** An object with these members and no others. */
function closed(properties: Readonly<Record<string, unknown>>, ...required: readonly string[]) {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** A document with one section, a map from names to entries. */
const section = (name: string, entry: unknown) =>
  closed({ [name]: { type: 'object', additionalProperties: entry } }, name);

const program = { command: text, args: texts, env: map };

const postmanHeader = { type: 'array', items: closed({ key: text, value: text }, 'key', 'value') };
const postmanBody = closed({ mode: { enum: ['raw'] }, raw: text, options: { type: 'object' } });
const postmanItem = closed(
  {
    name: text,
    request: closed({ method: text, header: postmanHeader, url: text, body: postmanBody }),
  },
  'request',
);

const continueProgram = closed(
  { name: text, type: { enum: ['stdio'] }, ...program, cwd: text },
  'name',
  'command',
);
const continueEndpoint = closed(
  {
    name: text,
    type: { enum: ['sse', 'streamable-http'] },
    url: text,
    requestOptions: closed({ headers: map }),
  },
  'name',
  'url',
);

/** JSON schemas by the name of the kind. */
export const CLIENT_SCHEMAS: Readonly<Record<string, object>> = {
  // google-gemini/gemini-cli, schemas/settings.schema.json at 0027ff71c1b3, MCPServerConfig.
  'gemini-cli': section('mcpServers', closed({ ...program, cwd: text, httpUrl: text, headers: map })),
  // openai/codex, codex-rs/core/config.schema.json at b8a1c8f8c467, RawMcpServerConfig.
  codex: section(
    'mcp_servers',
    closed({ ...program, url: text, env_vars: texts, http_headers: map, env_http_headers: map }),
  ),
  // microsoft/vscode, src/vs/workbench/contrib/mcp/common/mcpConfiguration.ts at 0b37532c56dc, mcpServerSchema. A variable of a
  // program may be a text, a number or null; the URL has to start with http:// or https://.
  vscode: section('servers', {
    oneOf: [
      closed({ type: { enum: ['stdio'] }, ...program, cwd: text }),
      closed(
        { type: { enum: ['http', 'sse'] }, url: { ...text, pattern: '^https?://.' }, headers: map },
        'url',
      ),
    ],
  }),
  // cline/cline, src/services/mcp/schemas.ts at 1a196376d185, McpSettingsSchema. A URL without a type is taken for HTTP+SSE.
  cline: section('mcpServers', {
    anyOf: [
      closed({ type: { enum: ['stdio'] }, ...program, cwd: text, disabled: flag }, 'command'),
      closed({ type: { enum: ['streamableHttp'] }, url: text, headers: map, disabled: flag }, 'type', 'url'),
    ],
  }),
  // zed-industries/zed, crates/settings_content/src/project.rs at 006ce515a3db, ContextServerSettingsContent: the editor generates
  // its schema from it.
  zed: section('context_servers', {
    anyOf: [
      closed({ ...program, enabled: flag }, 'command'),
      closed({ url: text, headers: map, enabled: flag }, 'url'),
    ],
  }),
  // block/goose, crates/goose/src/agents/extension.rs at 01cad15fdcd6, ExtensionConfig; `enabled` is beside it in the file.
  goose: section('extensions', {
    oneOf: ['stdio', 'streamable_http'].map((type) => {
      const own = type === 'stdio' ? { cmd: text, args: texts } : { uri: text, headers: map };
      const all = { name: text, description: text, envs: map, env_keys: texts, timeout: { type: 'integer' } };
      const members = { type: { const: type }, enabled: flag, ...all, ...own };
      const required = type === 'stdio' ? ['cmd', 'args'] : ['uri'];
      return closed(members, 'type', 'enabled', 'name', 'description', ...required);
    }),
  }),
  // postmanlabs/schemas, schemas/draft-07/v2.1.0/collection.json at 183cf6ddf580, item.json at 4d743ace47df, request.json at
  // 4f57f055ba00; a collection needs info and item, an item its request.
  postman: closed(
    {
      info: closed({ name: text, schema: text }, 'name', 'schema'),
      variable: { type: 'array', items: closed({ key: text, value: text }, 'key') },
      item: { type: 'array', items: postmanItem },
    },
    'info',
    'item',
  ),
  // continuedev/continue, the npm package @continuedev/config-yaml 1.42.0, configYamlSchema.
  continue: closed(
    {
      ...{ name: text, version: text, schema: text },
      mcpServers: { type: 'array', items: { anyOf: [continueProgram, continueEndpoint] } },
    },
    'name',
    'version',
  ),
};
