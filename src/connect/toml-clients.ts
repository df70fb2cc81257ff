// Clients with a file in TOML: Codex, which names the variables that a program or a header gets, instead of their values.

import { fileKind } from './file-kind.ts';
import { everywhere, setVariable, unlessEmpty } from './kind.ts';

/** Codex: a table for each server. */
export const codex = fileKind({
  name: 'codex',
  title: 'Codex',
  file: {
    format: 'toml',
    locations: everywhere('~/.codex/config.toml'),
    section: ['mcp_servers'],
    entry: (connection) => {
      const { key } = connection;
      if (connection.transport === 'http') {
        const { endpoint: url } = connection;
        if (key === undefined) return { url };
        return key.value === undefined
          ? { url, env_http_headers: { 'X-API-Key': key.variable } }
          : { url, http_headers: { 'X-API-Key': key.value } };
      }
      const { command, args, env } = connection;
      const given = key?.value === undefined ? env : { ...env, STAGEDOOR_API_KEY: key.value };
      return {
        command,
        args,
        ...(key !== undefined && key.value === undefined ? { env_vars: [key.variable] } : {}),
        ...unlessEmpty('env', given),
      };
    },
  },
  steps: (connection) => [
    ...setVariable(connection),
    'Append the snippet to ~/.codex/config.toml; the command line and the IDE extension read the same file.',
    'Start codex and type /mcp: the server is listed with its tools.',
  ],
  troubleshooting: [
    '"codex mcp get NAME" shows how the entry was read.',
    'A server that starts slowly: set startup_timeout_sec in its table.',
    '"headers" and "bearer_token" are not read: a key belongs into env_http_headers, which names a variable.',
  ],
  documentation: ['https://developers.openai.com/codex/mcp'],
});
