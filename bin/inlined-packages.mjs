// The program in dist/program contains packages that drivers of databases import, too. Without this a driver would load a second copy of them,
// whose classes are not those of the program. Plain JavaScript that Node 12 can parse.

import nodeModule from 'module';
import { join } from 'path';
import { pathToFileURL } from 'url';

/** The files that tools/program.vite.config.ts makes of them. */
const FILES = {
  '@mikro-orm/core': 'mikro-orm-core.js',
  '@mikro-orm/sql': 'mikro-orm-sql.js',
  kysely: 'kysely.js',
};

/** Leads every import of these packages to the files in `folder`. */
export function shareInlined(folder) {
  nodeModule.registerHooks({
    resolve(specifier, context, next) {
      const file = FILES[specifier];
      return next(file === undefined ? specifier : pathToFileURL(join(folder, file)).href, context);
    },
  });
}
