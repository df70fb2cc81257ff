// The program of README.md ("Inside a program"): its text, and the line that it prints. The page about embedding has the same.

import { readFileSync } from 'node:fs';

export const readmeProgram = programIn('README.md', 'Inside a program');
export const guideProgram = programIn('docs/guides/embedding.md', 'A program');
export const readmeOutput = '{"content":[{"type":"text","text":"Hello, Ada!"}]}\n';

/** The first program of a section of a page. */
function programIn(page: string, heading: string): string {
  const text = readFileSync(new URL(`../../../${page}`, import.meta.url), 'utf8').replaceAll('\r\n', '\n');
  const [, program = ''] = new RegExp(`^## ${heading}$[^]*?\`\`\`js\\n([^]*?)\`\`\``, 'm').exec(text) ?? [];
  return program;
}
