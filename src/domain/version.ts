// What this program is called: the versions that it reports, and how a person starts it, for the sentences that say what to run
// next.

/** Version of the package. A spec holds it against package.json. */
export const VERSION = '0.1.0';

/** Version of the HTTP API. */
export const API_VERSION = '2.0.0';

/**
 * The words as they are typed: `stagedoor db migrate` where the package is installed, `npx stagedoor db migrate` in a clone,
 * whose program is on no search path. `module`: URL of a file of this package.
 */
export function ownCommand(words: string, module: string = import.meta.url): string {
  const isInstalled = module.split('/').includes('node_modules');
  return `${isInstalled ? '' : 'npx '}stagedoor ${words}`;
}
