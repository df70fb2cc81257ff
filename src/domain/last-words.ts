// The last output of a failed program, for an operator who looks for the reason.

/** Lines that Node writes after the error: places in code, and its version. */
const STACK = /^\s+at .|^\s*[{}^]\s*$|^Node\.js v\d/;

/** The last `most` lines outside a stack, because the error is above its stack. Stack lines only when there are no others. */
export function lastWords(lines: readonly string[], most: number): readonly string[] {
  const said = lines.filter((line) => !STACK.test(line));
  return (said.length === 0 ? lines : said).slice(-most);
}
