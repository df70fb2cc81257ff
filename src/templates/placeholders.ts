// Placeholders in template definitions: names in `${...}` that are filled in when an instance is made.
// There is one: `${SCRATCH}` is a folder of the instance's own, for its files.

/** What each placeholder stands for. */
export interface PlaceholderValues {
  /** Absolute path of an empty folder that only this instance uses. */
  readonly SCRATCH: string;
}

const KNOWN: readonly string[] = ['SCRATCH'] satisfies (keyof PlaceholderValues)[];
const PLACEHOLDER = /\$\{([A-Z][A-Z0-9_]*)\}/g;

/** Fills the placeholders of a text. Anything else, `$HOME` or `${lower}`, stays as it is. */
export function fillPlaceholders(text: string, values: PlaceholderValues): string {
  return text.replaceAll(PLACEHOLDER, (written, name) => (name === 'SCRATCH' ? values.SCRATCH : written));
}

/** Placeholders of a text, as they are written, that nothing fills. */
export function unknownPlaceholders(text: string): string[] {
  return placeholdersOf(text)
    .filter((name) => !KNOWN.includes(name))
    .map((name) => `\${${name}}`);
}

/** Whether something in the text is to be filled in. */
export function hasPlaceholder(text: string): boolean {
  return placeholdersOf(text).length > 0;
}

function placeholdersOf(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name);
}
