// The versions and the name that this program reports, and the command that starts it, for messages that say what to run next.

/** Version of the package; a spec compares it with package.json. */
export const VERSION = '0.1.0';

export const API_VERSION = '2.0.0';

/** The gateway in handshakes with backends and with clients. */
export const GATEWAY_INFO = { name: 'stagedoor', version: VERSION };

/**
 * The command line to type in `folder`: `stagedoor db migrate` after a global installation,
 * `npx stagedoor db migrate` within a clone or a project that has the package. Anywhere else npx would download a
 * package of this name from a registry, so the program is named by its path. `module`: URL of a file of this
 * package.
 */
export function ownCommand(
  words: string,
  {
    module = import.meta.url,
    folder = presentFolder(),
  }: { readonly module?: string; readonly folder?: string } = {},
): string {
  const path = decodeURIComponent(new URL(module).pathname).replace(/^\/(?=[A-Za-z]:)/, '');
  const [, project, own = ''] = /^(.*)(\/node_modules\/stagedoor)\/(?:src|dist)\//.exec(path) ?? [];
  if (project !== undefined && GLOBAL.test(project)) return `stagedoor ${words}`;
  const root = project ?? path.replace(/\/(?:src|dist)\/.*$/s, '');
  if (`${folder.replaceAll('\\', '/')}/`.startsWith(`${root}/`)) return `npx stagedoor ${words}`;
  const program = `${root}${own}/bin/stagedoor.mjs`;
  return `node ${/\s/.test(program) ? `'${program}'` : program} ${words}`;
}

/** The present folder; empty when it was removed. */
function presentFolder(): string {
  try {
    return process.cwd();
  } catch {
    return ''; // Node has no other way to ask
  }
}

/** The folders in which npm keeps the packages of global installations: `/usr/local/lib`, `AppData/Roaming/npm`. */
const GLOBAL = /\/(?:lib|npm|nodejs)$/i;
