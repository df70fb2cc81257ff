// The script `prepare` of package.json: after `npm ci` in a clone it builds the console. Without the development dependencies
// there is nothing to build it with; the gateway then shows its small start page instead.

import { execSync } from 'node:child_process';
import { existsSync } from 'node:fs';

if (existsSync(new URL('../node_modules/vite/package.json', import.meta.url))) {
  execSync('npm run --silent build:console', { stdio: 'inherit' });
}
