// The script `prepare` of package.json: builds the console after `npm ci` in a clone. Without the development
// dependencies it cannot be built, and `/console` answers 404.

import { execSync } from 'node:child_process';
import { existsSync } from 'node:fs';

if (existsSync(new URL('../node_modules/vite/package.json', import.meta.url))) {
  execSync('npm run --silent build:console', { stdio: 'inherit' });
}
