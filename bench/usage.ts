// What the programs that npm starts answer to `--help`.

/** With `--help`: prints this text and ends the process. */
export function answerHelp(usage: string): void {
  if (!process.argv.includes('--help')) return;
  process.stdout.write(usage);
  process.exit(0);
}
