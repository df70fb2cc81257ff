// What a program that failed wrote last, for a person who wants to know why.

/** Places in code, which follow the error in what Node writes, and what it closes with. */
const STACK = /^\s+at .|^\s*[{}^]\s*$|^Node\.js v\d/;

/** At most so many lines, the last ones that say something: the error is above its stack. Only a stack is better than nothing. */
export function lastWords(lines: readonly string[], most: number): readonly string[] {
  const said = lines.filter((line) => !STACK.test(line));
  return (said.length === 0 ? lines : said).slice(-most);
}
