// The program of README.md ("Inside a program"): its text, and the line that it prints.

import { readFileSync } from 'node:fs';

const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
const [, text = ''] = /## Inside a program[\s\S]*?```js\n([\s\S]*?)```/.exec(readme) ?? [];

export const readmeProgram = text;
export const readmeOutput = '{"content":[{"type":"text","text":"Hello, Ada!"}]}\n';
