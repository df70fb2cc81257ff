// How a person starts this program, for the sentences that say what to run next. What the command line understands is
// cli/command-line.ts.

/**
 * The words as they are typed: `stagedoor db migrate` where the package is installed, `npx stagedoor db migrate` in a clone,
 * whose program is on no search path. `module`: URL of a file of this package.
 */
export function ownCommand(words: string, module: string = import.meta.url): string {
  const isInstalled = module.split('/').includes('node_modules');
  return `${isInstalled ? '' : 'npx '}stagedoor ${words}`;
}
