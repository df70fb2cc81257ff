// A view while it is edited: the definition itself, so that settings without a field in the editor stay as they are. Tools are
// chosen as the gateway chooses them (src/domain/accounts/globs.ts and src/protocol/aggregate/views/compiled-view.ts, which a spec
// compares).

type ByTool = Readonly<Record<string, unknown>>;

/** The part of one template that a view takes. */
export interface ViewSource {
  readonly template: string;
  /** Globs on the server's own names. Absent: all. */
  readonly tools?: readonly string[];
  /** `all` unless set. */
  readonly resources?: 'all' | 'none' | readonly string[];
  readonly prompts?: 'all' | 'none' | readonly string[];
  /** New names by the server's own. */
  readonly rename?: Readonly<Record<string, string>>;
  /** The descriptions by the new name, as in the following fields. */
  readonly describe?: Readonly<Record<string, string>>;
  readonly annotate?: Readonly<Record<string, Annotations>>;
  readonly defaults?: ByTool;
  /** A tool with other hints is left out. */
  readonly only?: Readonly<Partial<Record<'readOnly' | 'destructive' | 'idempotent' | 'openWorld', boolean>>>;
}

interface Annotations {
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

export interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly annotations?: Annotations;
}

export interface ViewDraft {
  readonly id: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly instructions?: string | undefined;
  readonly names?: 'bare' | 'prefixed';
  readonly mode?: 'list' | 'search';
  readonly approve?: 'none' | 'pinned';
  readonly from: readonly ViewSource[];
  /** The limits by the listed name. */
  readonly limits?: ByTool;
  /** Globs on listed names: these tools are listed in search mode, too. */
  readonly always?: readonly string[];
  /** Globs on listed names: the user confirms each call of these tools. */
  readonly confirm?: readonly string[];
}

export const NEW_VIEW: ViewDraft = { id: '', from: [] };

/** The settings of a template that is added for some of its tools. */
const TOOLS_ONLY = { resources: 'none', prompts: 'none' } as const;

/** The fields that go by the new name of a tool. */
const BY_NEW_NAME = ['describe', 'annotate', 'defaults'] as const;

export function sourceOf({ from }: ViewDraft, template: string): ViewSource | undefined {
  return from.find((source) => source.template === template);
}

/** Whether globs choose a tool; hints (`only`) may still leave it out. */
export function chooser(source: ViewSource | undefined): (own: string) => boolean {
  if (source === undefined) return () => false;
  return matcherOf(source.tools);
}

/** Whether a tool has the hints that `only` wants; hints that neither the tool nor the view gives have the defaults of MCP. */
export function hasHints(source: ViewSource, { name, annotations }: Tool): boolean {
  const given = { ...annotations, ...field(source.annotate, nameIn(source, name)) };
  const readOnly = given.readOnlyHint === true;
  const hints = {
    readOnly,
    destructive: !readOnly && given.destructiveHint !== false,
    idempotent: readOnly || given.idempotentHint === true,
    openWorld: given.openWorldHint !== false,
  };
  return Object.entries(source.only ?? {}).every(
    ([hint, value]) => hints[hint as keyof typeof hints] === value,
  );
}

/** A list that begins with `!` starts from all, every other one from none; the last glob that matches decides. */
function matcherOf(globs: readonly string[] | undefined): (name: string) => boolean {
  if (globs === undefined) return () => true;
  const patterns = globs.map((glob) => {
    const positive = glob.replace(/^!/, '');
    const text = positive
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replace(/[*?]/g, (each) => `[^]${each === '*' ? '*' : ''}`);
    return { isPositive: !glob.startsWith('!'), pattern: new RegExp(`^${text}$`, 'u') };
  });
  return (name) => patterns.findLast(({ pattern }) => pattern.test(name))?.isPositive ?? startsFromAll(globs);
}

export function withTool(view: ViewDraft, template: string, own: string, isChosen: boolean): ViewDraft {
  const source = sourceOf(view, template);
  if (chooser(source)(own) === isChosen) return view;
  if (source === undefined) return withSource(view, { template, tools: [own], ...TOOLS_ONLY });
  const tools = changedGlobs(source.tools, own, isChosen);
  const { tools: _, ...others } = isChosen ? source : withoutChanges(source, own);
  const isEmpty = tools?.length === 0 && source.resources === 'none' && source.prompts === 'none';
  if (isEmpty) return withoutTemplate(view, template);
  return withSource(view, tools === undefined ? others : { ...others, tools });
}

/** The view with all tools of a template, later ones included, or with nothing of it. */
export function withAllTools(view: ViewDraft, template: string, isChosen: boolean): ViewDraft {
  if (!isChosen) return withoutTemplate(view, template);
  const { tools: _, ...source } = sourceOf(view, template) ?? { template, ...TOOLS_ONLY };
  return withSource(view, source);
}

/** The name without prefix. */
export function nameIn(source: ViewSource, own: string): string {
  return field(source.rename, own) ?? own;
}

export function descriptionIn(source: ViewSource, own: string): string | undefined {
  return field(source.describe, nameIn(source, own));
}

/** The name that it gets if nothing else has it. */
export function listedName({ names }: ViewDraft, source: ViewSource, own: string): string {
  const name = nameIn(source, own);
  return names === 'prefixed' ? `${source.template}__${name}` : name;
}

/** Whether the user confirms each call of a tool. */
export function isConfirmed(view: ViewDraft, source: ViewSource, own: string): boolean {
  return matcherOf(view.confirm ?? [])(listedName(view, source, own));
}

/** The tools by template. */
type KnownTools = ReadonlyMap<string, { readonly tools?: readonly Tool[] }>;

/** The view with all names in the other form. */
export function withNames(view: ViewDraft, names: 'bare' | 'prefixed', known: KnownTools): ViewDraft {
  if ((view.names ?? 'bare') === names) return view;
  const next = { ...view, names };
  const moves = view.from.flatMap((source) => {
    const isChosen = chooser(source);
    const chosen = known.get(source.template)?.tools?.filter(({ name }) => isChosen(name)) ?? [];
    return chosen.map(
      ({ name }) => [listedName(view, source, name), listedName(next, source, name)] as const,
    );
  });
  return withListed(next, moves);
}

/** What goes by listed names, for tools that have new ones. `isAsked`: whether the user confirms calls. Default: as before. */
function withListed(
  view: ViewDraft,
  moves: readonly (readonly [before: string, now: string])[],
  isAsked?: boolean,
): ViewDraft {
  const limits = moves.flatMap(([before, now]) => {
    const limit = field(view.limits, before);
    return limit === undefined ? [] : [[now, limit] as const];
  });
  const left = moves.reduce((rest, [before]) => without(rest, before), view.limits);
  return cleaned<ViewDraft>({
    ...view,
    limits: limits.length === 0 ? left : { ...left, ...Object.fromEntries(limits) },
    always: movedGlobs(view.always, moves),
    confirm: movedGlobs(view.confirm, moves, isAsked),
  });
}

/** The globs that choose of these names what they chose before. */
function movedGlobs(
  globs: readonly string[] = [],
  moves: readonly (readonly [before: string, now: string])[],
  isChosen?: boolean,
): readonly string[] | undefined {
  const had = matcherOf(globs);
  const moved = moves.reduce((rest, [before, now]) => {
    const next = rest.map((glob) => (glob === before ? now : glob === `!${before}` ? `!${now}` : glob));
    const isWanted = isChosen ?? had(before);
    return matcherOf(next)(now) === isWanted ? next : (changedGlobs(next, now, isWanted) ?? ['*']);
  }, globs);
  return moved.length === 0 ? undefined : moved;
}

/** A new name and description of a tool, and whether its user confirms its calls. Empty, or as the server's own: none. */
export function withWords(
  view: ViewDraft,
  template: string,
  own: string,
  words: { readonly name: string; readonly description: string; readonly isConfirmed?: boolean },
  known: KnownTools = new Map(),
): ViewDraft {
  const source = sourceOf(view, template);
  if (source === undefined) return view;
  const before = nameIn(source, own);
  const name = words.name === '' ? own : words.name;
  const moved = BY_NEW_NAME.map((key) => [key, renamed(source[key], before, name)] as const);
  const changed = { ...source, ...Object.fromEntries(moved), rename: set(source.rename, own, name, own) };
  const described = set(renamed(source.describe, before, name), name, words.description, '');
  const next = cleaned<ViewSource>({ ...changed, describe: described });
  const [listed, now] = [listedName(view, source, own), listedName(view, next, own)];
  const result = withSource(withListed(view, [[listed, now]], words.isConfirmed), next);
  if (listed === now || !isWished(result, listed, known)) return result;
  return withListed(result, [[listed, listed]], isConfirmed(view, source, own));
}

/** Whether a known tool of the view wants this name. */
function isWished(view: ViewDraft, listed: string, known: KnownTools): boolean {
  return view.from.some((source) =>
    known
      .get(source.template)
      ?.tools?.some(({ name }) => listedName(view, source, name) === listed && chooser(source)(name)),
  );
}

export function withSource(view: ViewDraft, source: ViewSource): ViewDraft {
  const isNew = sourceOf(view, source.template) === undefined;
  const others = view.from.map((each) => (each.template === source.template ? source : each));
  return { ...view, from: isNew ? [...others, source] : others };
}

function withoutTemplate(view: ViewDraft, template: string): ViewDraft {
  return { ...view, from: view.from.filter((each) => each.template !== template) };
}

/** A change back leaves no trace, where the list means the same without it. */
function changedGlobs(
  globs: readonly string[] | undefined,
  own: string,
  isChosen: boolean,
): readonly string[] | undefined {
  const [entry, opposite] = isChosen ? [own, `!${own}`] : [`!${own}`, own];
  if (globs === undefined) return [entry];
  const rest = globs.filter((glob) => glob !== opposite && glob !== entry);
  const left = rest.length === 0 && startsFromAll(globs) ? undefined : rest;
  const isSame = left === undefined || startsFromAll(rest) === startsFromAll(globs);
  if (isSame && matcherOf(left)(own) === isChosen) return left;
  return [...(isSame ? rest : globs), entry];
}

function startsFromAll(globs: readonly string[]): boolean {
  return globs[0]?.startsWith('!') ?? false;
}

/** The source without the new name of a tool, and without the settings by that name. */
function withoutChanges(source: ViewSource, own: string): ViewSource {
  const name = nameIn(source, own);
  const left = BY_NEW_NAME.map((key) => [key, without(source[key], name)] as const);
  return cleaned<ViewSource>({ ...source, ...Object.fromEntries(left), rename: without(source.rename, own) });
}

function field<T>(values: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined;
}

function without<T>(values: Readonly<Record<string, T>> | undefined, name: string) {
  if (field(values, name) === undefined) return values;
  const left = Object.entries(values ?? {}).filter(([key]) => key !== name);
  return left.length === 0 ? undefined : Object.fromEntries(left);
}

function renamed<T>(values: Readonly<Record<string, T>> | undefined, before: string, name: string) {
  const value = field(values, before);
  if (value === undefined || before === name) return values;
  return Object.fromEntries(
    Object.entries(values ?? {}).map(([key, each]) => [key === before ? name : key, each]),
  );
}

/** `usual`: the value that needs no entry. */
function set(
  values: Readonly<Record<string, string>> | undefined,
  name: string,
  value: string,
  usual: string,
) {
  return value === usual ? without(values, name) : { ...values, [name]: value };
}

/** The object without fields that are undefined. */
function cleaned<T extends object>(value: { readonly [Key in keyof T]: T[Key] | undefined }): T {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T;
}
