// TABLE of the integrations of `stagedoor connect`, in the order in which they are shown.

import { autogen } from './autogen.ts';
import { claude } from './claude.ts';
import { claudeCode } from './claude-code.ts';
import { cline } from './cline.ts';
import { codex } from './codex.ts';
import { continueDev } from './continue.ts';
import { curl } from './curl.ts';
import { cursor } from './cursor.ts';
import { fastmcp } from './fastmcp.ts';
import { geminiCli } from './gemini-cli.ts';
import { goose } from './goose.ts';
import { jetbrains } from './jetbrains.ts';
import type { ConnectKind } from './kind.ts';
import { langchain } from './langchain.ts';
import { llamaindex } from './llamaindex.ts';
import { nodejs } from './nodejs.ts';
import { openaiAgents } from './openai-agents.ts';
import { postman } from './postman.ts';
import { python } from './python.ts';
import { vercelAi } from './vercel-ai.ts';
import { vscode } from './vscode.ts';
import { windsurf } from './windsurf.ts';
import { zed } from './zed.ts';

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
