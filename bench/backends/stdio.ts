// A fast fake MCP server over stdio: one write answers all requests of one chunk. It ends with its stdin.

import { answerTo, type Era, type Incoming } from './answer.ts';

const era: Era = process.argv.includes('--era=modern') ? 'modern' : 'legacy';
let rest = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk: string) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop() ?? '';
  let output = '';
  for (const line of lines) {
    if (line === '') continue;
    const message: Incoming = JSON.parse(line);
    const text = answerTo(message, era);
    if (text !== undefined) output += `${text}\n`;
  }
  if (output !== '') process.stdout.write(output);
});
process.stdin.on('end', () => process.exit(0));
