// Builds the program of the package into dist/program: few files, which Node loads in a quarter of the time (ADR 286).
// A clone runs its sources, and programs that embed a gateway use the modules in dist/.

import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Packages that drivers of databases import, too: bin/stagedoor.mjs leads them to these files. */
const SHARED = {
  'mikro-orm-core': '@mikro-orm/core',
  'mikro-orm-sql': '@mikro-orm/sql',
  kysely: 'kysely',
};

export default defineConfig({
  root,
  publicDir: false,
  // The condition "node" of rxjs leads to CommonJS.
  resolve: { alias: { rxjs: `${root}node_modules/rxjs/dist/esm/index.js` } },
  // Those with hundreds of files, and what they import. The others stay packages, which find their own dependencies.
  ssr: { noExternal: [...Object.values(SHARED), '@mikro-orm/migrations', 'rxjs', 'tslib', 'typebox'] },
  build: {
    ssr: true,
    outDir: 'dist/program',
    emptyOutDir: true,
    target: 'es2024',
    minify: false,
    license: { fileName: 'LICENSES.md' },
    reportCompressedSize: false,
    rolldownOptions: {
      input: { main: 'src/cli/main.ts', 'yaml-thread': 'src/registry/files/yaml-thread.ts', ...SHARED },
      output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
    },
  },
});
