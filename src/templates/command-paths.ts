// The parts of a word that may be paths: programs read lists, options with a value, URLs, encoded text and shell commands in a
// word. They are too many rather than too few, and found without a look at the file system.

/** The most characters of a path: no system opens a longer one; a program may remove each `..` first. */
export const PATH_CHARACTERS = 4_096;
/**
 * The bounds of the cost of one word: the first and the last `=` of a text after which a path is looked for, and the
 * characters that variables add.
 */
const EQUALS = 32;
const FILLED_CHARACTERS = 65_536;

/** The characters that separate paths in a word. A path may contain some of them, so each kind also separates alone. */
const SEPARATORS = [/(?!)/, /,/, /[:;]/, /\s+/, /['"`]/, /[\s'"`,:;=|&<>(){}[\]!?#@$^]+/];

/**
 * The texts in `word` that a program may read as a path, some more than once: absolute, relative or starting with `~`.
 * `variables` are those that a shell would replace. The work between two of them is that of one split of the word.
 */
export function* pathTextsIn(
  word: string,
  variables: Readonly<Record<string, string>> = {},
): Generator<string> {
  const spellings = new Set([
    word,
    filled(word, variables),
    decoded(word),
    word.replaceAll('\\', '/'),
    word.replaceAll(/\\(.)|['"]/g, '$1'), // as a shell removes quotes
    unescaped(word),
  ]);
  // An empty path is the current folder: alone, or as the value of an option.
  const mayBeEmpty = /^([^=]+=)?$/.test(word);
  const pieces = new Set<string>();
  for (const spelling of spellings)
    for (const separator of SEPARATORS) {
      for (const piece of spelling.split(separator)) {
        if (pieces.has(piece)) continue;
        pieces.add(piece);
        for (const text of valuesIn(piece)) if (text !== '' || mayBeEmpty) yield text;
      }
      if (spelling !== '') yield spelling; // also after a split that gave nothing new
    }
}

/** The text; the parts of it after each `=` or the letter of an option; and the path of a URL. */
function* valuesIn(text: string): Generator<string> {
  yield text;
  const equals = Array.from(text.matchAll(/=/g), ({ index }) => index);
  for (const at of new Set([...equals.slice(0, EQUALS), ...equals.slice(-EQUALS)])) yield text.slice(at + 1);
  if (text.startsWith('-')) {
    yield text.slice(2) || text; // -C/path
    yield text.slice(Math.max(0, text.search(/[/.~]/))); // -xC/path
  }
  const url = URL.parse(text); // it ignores line breaks and tabs
  if (url?.protocol === 'file:') yield decoded(url.pathname);
  const { relative } = /^(?:[\w+.-]+:)?\/\/+(?<relative>.+)$/s.exec(text)?.groups ?? {};
  if (relative !== undefined) yield relative; // sqlite:///gateway.db, sqlite://gateway.db
}

/** The text without escapes of JSON, such as `\u002e`, and `\x2e` of other languages. */
function unescaped(text: string): string {
  return text.replaceAll(/\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|(.))/gi, (_, unit, byte, other) =>
    other === undefined ? String.fromCharCode(Number.parseInt(unit ?? byte, 16)) : other,
  );
}

/** The text with the variables replaced, like in a shell, until that would make it too long. */
function filled(text: string, variables: Readonly<Record<string, string>>): string {
  let left = FILLED_CHARACTERS;
  return text.replaceAll(/\$(?:(\w+)|\{(\w+)\})/g, (all, name, braced) => {
    const key = String(name ?? braced);
    const value = (Object.hasOwn(variables, key) ? variables[key] : undefined) ?? all;
    left -= value.length;
    return left < 0 ? all : value;
  });
}

/** The text without `%2e` and the like; other `%` stay. */
function decoded(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (code) =>
    Buffer.from(code.replaceAll('%', ''), 'hex').toString(),
  );
}
