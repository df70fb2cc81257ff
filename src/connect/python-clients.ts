// Libraries for Python: programs that list the tools of a template.

import {
  type Connection,
  type ConnectKind,
  type EndpointConnection,
  type ProgramConnection,
  setVariable,
} from './kind.ts';

/** The official SDK for Python, from its second major version on. */
export const python = pythonKind({
  name: 'python',
  title: 'Python (official SDK)',
  snippet: (connection) => {
    if (connection.transport === 'http') {
      const url = pyString(connection.endpoint);
      const headers = pyHeaders(connection);
      if (headers === undefined) {
        return pyProgram(['from mcp import Client'], [`async with Client(${url}) as client:`, ...LIST_TOOLS]);
      }
      return pyProgram(
        [
          'import httpx2',
          'from mcp import Client',
          'from mcp.client.streamable_http import streamable_http_client',
        ],
        [
          `headers = ${headers}`,
          'timeout = httpx2.Timeout(30, read=300)',
          'async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:',
          `    async with Client(streamable_http_client(${url}, http_client=http)) as client:`,
          ...LIST_TOOLS.map((line) => `    ${line}`),
        ],
      );
    }
    return pyProgram(
      ['from mcp import Client, StdioServerParameters'],
      [
        `server = StdioServerParameters(${pyCommand(connection)})`,
        'async with Client(server) as client:',
        ...LIST_TOOLS,
      ],
    );
  },
  install: '"mcp>=2"',
  trouble: ['"cannot import name Client": the installed mcp is older than 2.0.'],
  documentation: ['https://github.com/modelcontextprotocol/python-sdk/blob/main/docs/client/transports.md'],
});

const LIST_TOOLS = [
  '    result = await client.list_tools()',
  '    print("\\n".join(tool.name for tool in result.tools))',
];

/** FastMCP: the client of the framework for Python. */
export const fastmcp = pythonKind({
  name: 'fastmcp',
  title: 'FastMCP',
  snippet: (connection) => {
    if (connection.transport === 'http') {
      const headers = pyHeaders(connection);
      const given = headers === undefined ? '' : `, headers=${headers}`;
      return fastmcpProgram('StreamableHttpTransport', `${pyString(connection.endpoint)}${given}`);
    }
    return fastmcpProgram('StdioTransport', pyCommand(connection));
  },
  install: 'fastmcp',
  documentation: ['https://gofastmcp.com/clients/transports'],
});

function fastmcpProgram(transport: string, given: string): string {
  return pyProgram(
    ['from fastmcp import Client', `from fastmcp.client.transports import ${transport}`],
    [
      `async with Client(${transport}(${given})) as client:`,
      '    tools = await client.list_tools()',
      '    print("\\n".join(tool.name for tool in tools))',
    ],
  );
}

/** LangChain: tools for its agents, through the adapter that it has of its own. */
export const langchain = pythonKind({
  name: 'langchain',
  title: 'LangChain',
  snippet: (connection) =>
    pyProgram(
      ['from langchain.mcp import MCPAdapter'],
      [
        `config = ${pyDict({ mcpServers: pyDict({ [connection.template]: pyEntry(connection) }) })}`,
        'async with MCPAdapter(config) as adapter:',
        '    tools = await adapter.list_tools()',
        '    print("\\n".join(tool.name for tool in tools))',
        '    # create_agent("provider:model", tools) uses them',
      ],
    ),
  install: '"langchain[mcp]>=1.4"',
  trouble: [
    '"No module named langchain.mcp": LangChain is older than 1.4, or installed without the extra "mcp".',
  ],
  documentation: [
    'https://docs.langchain.com/oss/python/langchain/mcp',
    'https://docs.langchain.com/oss/python/migrate/langchain-mcp-adapters',
  ],
});

/** LlamaIndex: tools for its agents. */
export const llamaindex = pythonKind({
  name: 'llamaindex',
  title: 'LlamaIndex',
  snippet: (connection) => {
    if (connection.transport === 'http') {
      const headers = pyHeaders(connection);
      return llamaProgram(
        `${pyString(connection.endpoint)}${headers === undefined ? '' : `, headers=${headers}`}`,
      );
    }
    const env = pyEnvironment(connection);
    const { command, args } = connection;
    return llamaProgram(
      `${pyString(command)}, args=${pyList(args)}${env === undefined ? '' : `, env=${env}`}`,
    );
  },
  install: 'llama-index-tools-mcp',
  documentation: ['https://developers.llamaindex.ai/python/framework/module_guides/mcp/llamaindex_mcp'],
});

function llamaProgram(given: string): string {
  return pyProgram(
    ['from llama_index.tools.mcp import BasicMCPClient, McpToolSpec'],
    [
      `client = BasicMCPClient(${given})`,
      'tools = await McpToolSpec(client=client).to_tool_list_async()',
      'print("\\n".join(tool.metadata.name for tool in tools))',
      '# FunctionAgent(tools=tools, llm=...) uses them',
    ],
  );
}

/** AutoGen: tools for its agents. */
export const autogen = pythonKind({
  name: 'autogen',
  title: 'AutoGen',
  snippet: (connection) => {
    if (connection.transport === 'http') {
      const headers = pyHeaders(connection);
      const given = headers === undefined ? '' : `, headers=${headers}`;
      return autogenProgram('StreamableHttpServerParams', `url=${pyString(connection.endpoint)}${given}`);
    }
    return autogenProgram('StdioServerParams', pyCommand(connection));
  },
  install: '"autogen-ext[mcp]" autogen-agentchat',
  documentation: ['https://microsoft.github.io/autogen/stable/reference/python/autogen_ext.tools.mcp.html'],
});

function autogenProgram(params: string, given: string): string {
  return pyProgram(
    [`from autogen_ext.tools.mcp import ${params}, mcp_server_tools`],
    [
      `tools = await mcp_server_tools(${params}(${given}))`,
      'print("\\n".join(tool.name for tool in tools))',
      '# AssistantAgent("name", model_client=..., tools=tools) uses them',
    ],
  );
}

/** OpenAI Agents SDK: a server for its agents, which it keeps open while they run. */
export const openaiAgents = pythonKind({
  name: 'openai-agents',
  title: 'OpenAI Agents SDK',
  snippet: (connection) => {
    const server = connection.transport === 'http' ? 'MCPServerStreamableHttp' : 'MCPServerStdio';
    return pyProgram(
      [`from agents.mcp import ${server}`],
      [
        `params = ${pyEntry(connection)}`,
        `async with ${server}(name=${pyString(connection.template)}, params=params) as server:`,
        '    tools = await server.list_tools()',
        '    print("\\n".join(tool.name for tool in tools))',
        '    # Agent(name="...", mcp_servers=[server]) uses them',
      ],
    );
  },
  install: 'openai-agents',
  trouble: ['A time-out while it connects: raise client_session_timeout_seconds of the server.'],
  documentation: ['https://openai.github.io/openai-agents-python/mcp/'],
});

/** The row of a library. `install` is what pip installs, `trouble` what goes wrong with this library alone. */
function pythonKind({
  install,
  trouble = [],
  ...kind
}: Pick<ConnectKind, 'name' | 'title' | 'snippet' | 'documentation'> & {
  readonly install: string;
  readonly trouble?: readonly string[];
}): ConnectKind {
  return {
    ...kind,
    transports: ['stdio', 'http'],
    language: 'python',
    steps: (connection) => [
      `Run "pip install ${install}" in a virtual environment.`,
      'Save the snippet as client.py.',
      ...setVariable(connection),
      'Run "python client.py": it prints the names of the tools.',
    ],
    troubleshooting: [
      ...trouble,
      'KeyError: the variable with the key is not set.',
      '"401": the key is not valid, or revoked; "404": the template is not there, or the key may not use it.',
    ],
  };
}

function keyExpression({ key }: Connection): string {
  if (key?.value !== undefined) return pyString(key.value);
  return `os.environ[${pyString(key?.variable ?? '')}]`;
}

/** The headers as a map of Python; undefined when there are none. */
function pyHeaders(connection: EndpointConnection): string | undefined {
  return connection.key === undefined ? undefined : pyDict({ 'X-API-Key': keyExpression(connection) });
}

/** The variables of the program, on top of those of this one, as a map of Python; undefined when there are none. */
function pyEnvironment(connection: ProgramConnection): string | undefined {
  const given = Object.fromEntries(
    Object.entries(connection.env).map(([name, value]) => [name, pyString(value)]),
  );
  const all =
    connection.key === undefined ? given : { ...given, STAGEDOOR_API_KEY: keyExpression(connection) };
  if (Object.keys(all).length === 0) return undefined;
  return `{**os.environ, ${pyDict(all).slice(1)}`;
}

/** Arguments of a call: `command="...", args=[...]`. */
function pyCommand(connection: ProgramConnection): string {
  const env = pyEnvironment(connection);
  const { command, args } = connection;
  return `command=${pyString(command)}, args=${pyList(args)}${env === undefined ? '' : `, env=${env}`}`;
}

/** The same as members of a map: `"command": "...", "args": [...]`. */
function pyEntry(connection: Connection): string {
  if (connection.transport === 'http') {
    const headers = pyHeaders(connection);
    return pyDict({
      url: pyString(connection.endpoint),
      ...(headers === undefined ? {} : { headers }),
    });
  }
  const env = pyEnvironment(connection);
  const { command, args } = connection;
  return pyDict({ command: pyString(command), args: pyList(args), ...(env === undefined ? {} : { env }) });
}

/** A string of Python: the escapes of JSON are among those of Python. */
function pyString(text: string): string {
  return JSON.stringify(text);
}

/** A list of strings in Python. */
function pyList(texts: readonly string[]): string {
  return `[${texts.map(pyString).join(', ')}]`;
}

/** A map in Python; the values are expressions. */
function pyDict(entries: Readonly<Record<string, string>>): string {
  const members = Object.entries(entries).map(([name, expression]) => `${pyString(name)}: ${expression}`);
  return `{${members.join(', ')}}`;
}

/** A program with an asynchronous main, whose lines are not indented. `os` is imported where they use it. */
function pyProgram(imports: readonly string[], lines: readonly string[]): string {
  const usesEnvironment = lines.some((line) => line.includes('os.environ'));
  return [
    'import asyncio',
    ...(usesEnvironment ? ['import os'] : []),
    '',
    ...imports,
    '',
    '',
    'async def main() -> None:',
    ...lines.map((line) => (line === '' ? '' : `    ${line}`)),
    '',
    '',
    'asyncio.run(main())',
  ].join('\n');
}
