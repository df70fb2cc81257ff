// The program of the package, and beside it what watches its answers in specs: with modules of its own this would load the routes and
// their schemas a second time.

import { mergeConfig } from 'vite';
import program from './program.vite.config.ts';

export default mergeConfig(program, {
  build: { rolldownOptions: { input: { 'watch-program': 'spec/helpers/api/watch-program.ts' } } },
});
