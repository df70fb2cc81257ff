// TABLE of the integrations of `stagedoor connect`, in the order in which they are shown. Clients of one family share a file.

import { curl } from './curl.ts';
import { nodejs, vercelAi } from './javascript-clients.ts';
import {
  claude,
  claudeCode,
  cline,
  cursor,
  geminiCli,
  jetbrains,
  vscode,
  windsurf,
  zed,
} from './json-clients.ts';
import type { ConnectKind } from './kind.ts';
import { postman } from './postman.ts';
import { autogen, fastmcp, langchain, llamaindex, openaiAgents, python } from './python-clients.ts';
import { codex } from './toml-clients.ts';
import { continueDev, goose } from './yaml-clients.ts';

/** Every kind of client there is a snippet for: apps and editors, tools of the command line, libraries. */
export const CONNECT_KINDS: readonly ConnectKind[] = [
  claude,
  claudeCode,
  vscode,
  cursor,
  windsurf,
  cline,
  continueDev,
  zed,
  jetbrains,
  geminiCli,
  codex,
  goose,
  postman,
  curl,
  nodejs,
  python,
  fastmcp,
  langchain,
  llamaindex,
  autogen,
  openaiAgents,
  vercelAi,
];
