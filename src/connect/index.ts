// TABLE of the integrations of `stagedoor connect`, in the order in which they are shown. Clients of one family share a file.

import type { ConnectKind } from './connect-kind.ts';
import { FILE_CLIENTS } from './file-clients.ts';
import { nodejs, vercelAi } from './javascript-clients.ts';
import { PYTHON_CLIENTS } from './python-clients.ts';
import { curl, postman } from './request-tools.ts';

/** Every kind of client with a snippet: apps and editors, command line tools, libraries. */
export const CONNECT_KINDS: readonly ConnectKind[] = [
  ...FILE_CLIENTS,
  postman,
  curl,
  nodejs,
  ...PYTHON_CLIENTS,
  vercelAi,
];
