// The versions and the name that this program reports, and the command that starts it, for messages that say what to run next.

/** Version of the package; a spec compares it with package.json. */
export const VERSION = '0.1.0';

export const API_VERSION = '2.0.0';

/** The gateway in handshakes with backends and with clients. */
export const GATEWAY_INFO = { name: 'stagedoor', version: VERSION };

/**
 * The command line to type: `stagedoor db migrate` where the package is installed, `npx stagedoor db migrate` in a clone, whose program
 * is not on the search path. `module`: URL of a file of this package.
 */
export function ownCommand(words: string, module: string = import.meta.url): string {
  const isInstalled = module.split('/').includes('node_modules');
  return `${isInstalled ? '' : 'npx '}stagedoor ${words}`;
}
