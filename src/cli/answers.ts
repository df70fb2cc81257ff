// Reads the answers of a gateway field by field, since a gateway of another version may answer differently.
// Translates its validation issues into options, since users type options and not JSON.

export type Fields = Readonly<Record<string, unknown>>;

export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value as a list of objects; empty for any other value. */
export function listOf(value: unknown): readonly Fields[] {
  return itemsOf(value).map(fields);
}

export function instancesOf(registry: unknown): readonly Fields[] {
  return Object.values(fields(fields(registry).templates)).flatMap((each) => listOf(fields(each).instances));
}

/** The state of an instance in one word: `ejected` for a healthy instance that gets no calls. */
export function shownStateOf({ state, ejection }: Fields): string {
  const isEjected = typeof fields(ejection).reason === 'string';
  return state === 'healthy' && isEjected ? 'ejected' : String(state ?? '-');
}

/** The reason why an instance is not healthy or gets no calls, as a clause; empty when the record has none. */
export function shownReasonOf({ reason, ejection }: Fields): string {
  const text = reason ?? fields(ejection).reason;
  return typeof text === 'string' ? text.replace(/\.$/, '') : '';
}

/** The rules of names in words: the gateway answers with a regular expression. */
const NAME_RULES: Readonly<Record<string, string>> = {
  template_name: 'a template name is lower-case letters, digits and hyphens, starting with a letter',
  id: 'an instance id is letters, digits, dots, hyphens and underscores, starting with a letter or a digit',
};

const WRITTEN_AS: Readonly<Record<string, string>> = {
  template_name: '<template>',
  id: '--id',
  endpoint: '--endpoint',
  command: '--command',
  transport: '--transport',
  working_dir: '--working-dir',
  env_vars: '--env',
  headers: '--header',
  metadata: '--metadata',
  weight: '--weight',
  username: '<username>',
  password: '--password',
  email: '--email',
  is_superuser: '--role',
  templates: '--templates',
  name: '<name>',
  level: '<level>',
  permissions: '--permissions',
  expires_at: '--expires',
};

/** One issue about invalid input, as a clause: `--env A-B: no name of a variable`. */
export function issueText(item: unknown): string {
  const { loc, msg, type } = fields(item);
  const path = Array.isArray(loc) ? loc.map(String) : ['request'];
  const rule = type === 'string_pattern_mismatch' ? NAME_RULES[path.at(-1) ?? ''] : undefined;
  return rule ?? `${fieldLabel(path)}: ${String(msg)}`;
}

/** `--env A` for `body.instance.env_vars.A`; a field without an option stays a path. */
function fieldLabel(path: readonly string[]): string {
  const [source, field = '', ...below] = path.filter((each, index) => index !== 1 || each !== 'instance');
  // Each parameter of a query is an option of the same name.
  if (source === 'query') return `--${field}`;
  const written = Object.hasOwn(WRITTEN_AS, field) ? WRITTEN_AS[field] : undefined;
  if (written === undefined) return path.join('.');
  return below.length === 0 ? written : `${written} ${below.join('.')}`;
}
