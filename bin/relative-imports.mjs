// Finds relative imports of a clone without looking: for each of its thousand modules Node looks up the file, its real path and the type of
// its package, which is a fifth of a start. Plain JavaScript that Node 12 can parse.

import nodeModule from 'module';
import { join } from 'path';
import { pathToFileURL } from 'url';

/**
 * Takes a relative import literally where the name tells the kind of module: `.mjs` in any package, and `.ts` in the sources below
 * `root`. Node finds all others, among them those of a file that is reached by a symbolic link, for which it has the real path. A file
 * that is missing is reported when it is read.
 */
export function takeRelativeImports(root) {
  if (nodeModule.registerHooks === undefined) return; // Node 23 before 23.5
  const sources = pathToFileURL(join(root, 'src', '/')).href;
  nodeModule.registerHooks({
    resolve(specifier, context, next) {
      const parent = context.parentURL;
      const isRelative =
        specifier.charAt(0) === '.' && parent !== undefined && parent.slice(0, 5) === 'file:';
      const format = isRelative
        ? formatOf(specifier, parent.slice(0, sources.length) === sources)
        : undefined;
      if (format === undefined) return next(specifier, context);
      return { url: new URL(specifier, parent).href, format, shortCircuit: true };
    },
  });
}

function formatOf(specifier, isInSources) {
  if (specifier.slice(-4) === '.mjs') return 'module';
  return isInSources && specifier.slice(-3) === '.ts' ? 'module-typescript' : undefined;
}
