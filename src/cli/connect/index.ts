// TABLE of the integrations of `stagedoor connect`, in the order in which they are shown.

import { claudeCode } from './claude-code.ts';
import { curl } from './curl.ts';
import type { ConnectKind } from './kind.ts';
import { nodejs } from './nodejs.ts';
import { vscode } from './vscode.ts';

/** Every kind of client there is a snippet for. */
export const CONNECT_KINDS: readonly ConnectKind[] = [claudeCode, vscode, curl, nodejs];
