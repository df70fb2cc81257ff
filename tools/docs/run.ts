// `npm run docs`: writes the generated part of each page. pages.ts lists pages and generators.

import { writeFileSync } from 'node:fs';
import { generatedPages } from './pages.ts';

for (const { file, url, before, after } of generatedPages()) {
  if (before === after) continue;
  writeFileSync(url, after);
  console.log(`wrote ${file}`);
}
