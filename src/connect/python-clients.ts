// Libraries for Python: programs that list the tools of a template.

import { type ConnectKind, SET_VARIABLE } from './connect-kind.ts';
import type { ConnectTarget } from './connect-target.ts';

interface PythonProgram {
  readonly imports: readonly string[];
  /** The lines of main, not indented. */
  readonly main: readonly string[];
}

const PRINT_TOOLS = 'print("\\n".join(tool.name for tool in tools))';

const LIST_TOOLS = [
  '    result = await client.list_tools()',
  '    print("\\n".join(tool.name for tool in result.tools))',
];

export const PYTHON_CLIENTS: readonly ConnectKind[] = [
  // The official SDK for Python, from its second major version on.
  pythonKind({
    name: 'python',
    title: 'Python (official SDK)',
    program: (target) => {
      const { url = '', headers } = membersOf(target);
      if (headers === undefined) {
        const isHttp = target.transport === 'http';
        return {
          imports: [`from mcp import Client${isHttp ? '' : ', StdioServerParameters'}`],
          main: [
            ...(isHttp ? [] : [`server = StdioServerParameters(${pyArguments(target)})`]),
            `async with Client(${isHttp ? url : 'server'}) as client:`,
            ...LIST_TOOLS,
          ],
        };
      }
      return {
        imports: [
          'import httpx2',
          'from mcp import Client',
          'from mcp.client.streamable_http import streamable_http_client',
        ],
        main: [
          `headers = ${headers}`,
          'timeout = httpx2.Timeout(30, read=300)',
          'async with httpx2.AsyncClient(headers=headers, timeout=timeout) as http:',
          `    async with Client(streamable_http_client(${url}, http_client=http)) as client:`,
          ...LIST_TOOLS.map((line) => `    ${line}`),
        ],
      };
    },
    install: '"mcp>=2"',
    trouble: ['"cannot import name Client": the installed mcp is older than 2.0.'],
    documentation: ['https://github.com/modelcontextprotocol/python-sdk/blob/main/docs/client/transports.md'],
  }),
  pythonKind({
    name: 'fastmcp',
    title: 'FastMCP',
    program: (target) => {
      const isHttp = target.transport === 'http';
      const transport = isHttp ? 'StreamableHttpTransport' : 'StdioTransport';
      return {
        imports: ['from fastmcp import Client', `from fastmcp.client.transports import ${transport}`],
        main: [
          `async with Client(${transport}(${pyArguments(target, isHttp)})) as client:`,
          '    tools = await client.list_tools()',
          `    ${PRINT_TOOLS}`,
        ],
      };
    },
    install: 'fastmcp',
    documentation: ['https://gofastmcp.com/clients/transports'],
  }),
  // LangChain: tools for its agents, through its adapter.
  pythonKind({
    name: 'langchain',
    title: 'LangChain',
    program: (target) => ({
      imports: ['from langchain.mcp import MCPAdapter'],
      main: [
        `config = ${pyDict({ mcpServers: pyDict({ [target.template]: pyDict(membersOf(target)) }) })}`,
        'async with MCPAdapter(config) as adapter:',
        '    tools = await adapter.list_tools()',
        `    ${PRINT_TOOLS}`,
        '    # create_agent("provider:model", tools) uses them',
      ],
    }),
    install: '"langchain[mcp]>=1.4"',
    trouble: [
      '"No module named langchain.mcp": LangChain is older than 1.4, or installed without the extra "mcp".',
    ],
    documentation: [
      'https://docs.langchain.com/oss/python/langchain/mcp',
      'https://docs.langchain.com/oss/python/migrate/langchain-mcp-adapters',
    ],
  }),
  pythonKind({
    name: 'llamaindex',
    title: 'LlamaIndex',
    program: (target) => ({
      imports: ['from llama_index.tools.mcp import BasicMCPClient, McpToolSpec'],
      main: [
        `client = BasicMCPClient(${pyArguments(target, true)})`,
        'tools = await McpToolSpec(client=client).to_tool_list_async()',
        'print("\\n".join(tool.metadata.name for tool in tools))',
        '# FunctionAgent(tools=tools, llm=...) uses them',
      ],
    }),
    install: 'llama-index-tools-mcp',
    documentation: ['https://developers.llamaindex.ai/python/framework/module_guides/mcp/llamaindex_mcp'],
  }),
  pythonKind({
    name: 'autogen',
    title: 'AutoGen',
    program: (target) => {
      const params = target.transport === 'http' ? 'StreamableHttpServerParams' : 'StdioServerParams';
      return {
        imports: [`from autogen_ext.tools.mcp import ${params}, mcp_server_tools`],
        main: [
          `tools = await mcp_server_tools(${params}(${pyArguments(target)}))`,
          PRINT_TOOLS,
          '# AssistantAgent("name", model_client=..., tools=tools) uses them',
        ],
      };
    },
    install: '"autogen-ext[mcp]" autogen-agentchat',
    documentation: ['https://microsoft.github.io/autogen/stable/reference/python/autogen_ext.tools.mcp.html'],
  }),
  // OpenAI Agents SDK: a server for its agents, open while they run.
  pythonKind({
    name: 'openai-agents',
    title: 'OpenAI Agents SDK',
    program: (target) => {
      const server = target.transport === 'http' ? 'MCPServerStreamableHttp' : 'MCPServerStdio';
      return {
        imports: [`from agents.mcp import ${server}`],
        main: [
          `params = ${pyDict(membersOf(target))}`,
          `async with ${server}(name=${pyString(target.template)}, params=params) as server:`,
          '    tools = await server.list_tools()',
          `    ${PRINT_TOOLS}`,
          '    # Agent(name="...", mcp_servers=[server]) uses them',
        ],
      };
    },
    install: 'openai-agents',
    trouble: ['A time-out while it connects: raise client_session_timeout_seconds of the server.'],
    documentation: ['https://openai.github.io/openai-agents-python/mcp/'],
  }),
];

/** The row of a library. `install`: the packages for pip; `trouble`: problems of this library only. */
function pythonKind({
  program,
  install,
  trouble = [],
  ...kind
}: Pick<ConnectKind, 'name' | 'title' | 'documentation'> & {
  readonly program: (target: ConnectTarget) => PythonProgram;
  readonly install: string;
  readonly trouble?: readonly string[];
}): ConnectKind {
  return {
    ...kind,
    transports: ['stdio', 'http'],
    language: 'python',
    snippet: (target) => textOf(program(target)),
    steps: [
      `Run "pip install ${install}" in a virtual environment.`,
      'Save the snippet as client.py.',
      SET_VARIABLE,
      'Run "python client.py": it prints the names of the tools.',
    ],
    troubleshooting: [
      ...trouble,
      'KeyError: the variable with the key is not set.',
      '"401": the key is not valid, or revoked; "404": the template does not exist, or the key may not use it.',
    ],
  };
}

/** The text of the program. It imports `os` only when the lines use it. */
function textOf({ imports, main }: PythonProgram): string {
  const usesEnvironment = main.some((line) => line.includes('os.environ'));
  return [
    'import asyncio',
    ...(usesEnvironment ? ['import os'] : []),
    '',
    ...imports,
    '',
    '',
    'async def main() -> None:',
    ...main.map((line) => `    ${line}`),
    '',
    '',
    'asyncio.run(main())',
  ].join('\n');
}

/** The server in the form of Python expressions: `url`, `headers`; or `command`, `args`, `env`. */
function membersOf(target: ConnectTarget): Readonly<Record<string, string>> {
  const { key } = target;
  const keyExpression =
    key?.value === undefined ? `os.environ[${pyString(key?.variable ?? '')}]` : pyString(key.value);
  if (target.transport === 'http') {
    const headers = key === undefined ? {} : { headers: pyDict({ 'X-API-Key': keyExpression }) };
    return { url: pyString(target.endpoint), ...headers };
  }
  const { command, args, env } = target;
  const variables = {
    ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, pyString(value)])),
    ...(key === undefined ? {} : { STAGEDOOR_API_KEY: keyExpression }),
  };
  return {
    command: pyString(command),
    args: `[${args.map(pyString).join(', ')}]`,
    // In addition to the variables of this program.
    ...(Object.keys(variables).length === 0 ? {} : { env: `{**os.environ, ${pyDict(variables).slice(1)}` }),
  };
}

/** The members as arguments of a call: `command="...", args=[...]`; with `isBare` the first has no name. */
function pyArguments(target: ConnectTarget, isBare = false): string {
  return Object.entries(membersOf(target))
    .map(([name, expression], index) => (isBare && index === 0 ? expression : `${name}=${expression}`))
    .join(', ');
}

/** A string of Python: the escapes of JSON are among those of Python. */
function pyString(text: string): string {
  return JSON.stringify(text);
}

/** A map in Python; the values are expressions. */
function pyDict(entries: Readonly<Record<string, string>>): string {
  const members = Object.entries(entries).map(([name, expression]) => `${pyString(name)}: ${expression}`);
  return `{${members.join(', ')}}`;
}
