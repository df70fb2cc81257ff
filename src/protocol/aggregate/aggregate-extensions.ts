// Extensions of several templates as one server. A method that MCP does not have goes to the one template that announces its extension;
// the skills of all templates are one list. Source: ADR 240.

import { filter, firstValueFrom, type Observable } from 'rxjs';
import { type Answer, type ExchangeRequest, isFinalAnswer, parsedResult } from '../../domain/exchange.ts';
import { isDeeper, isJsonObject, type JsonObject, JsonText } from '../../domain/json.ts';
import { LIMITS } from '../../domain/limits.ts';
import { LruMap } from '../../domain/lru-map.ts';
import type { Backends, Client, Owner } from '../ports.ts';

/** Sends a request to a template, in the session of the client if it has one. */
export type ToTemplate = (template: string, request: ExchangeRequest) => Observable<Answer>;

export interface ExtensionsDeps {
  readonly templates: (owner: Owner) => readonly string[];
  readonly backendsOf: (template: string) => Pick<Backends, 'peers'>;
}

const SKILLS = 'skills';
const SCHEME = 'skill://';
/** Pages of the skills of one template, and skills of all. */
const MAX_PAGES = 20;
const MAX_SKILLS = 2_000;
/** Bytes of JSON of the skills of one template. The page that exceeds them is left out, and ends the list. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Callers whose skills are remembered. */
const CALLERS = 1_000;

/** By the name of a skill, the templates that have it, in their order. */
type SkillOwners = ReadonlyMap<string, readonly string[]>;

export class AggregateExtensions {
  readonly #deps: ExtensionsDeps;
  readonly #owners = new LruMap<SkillOwners>(CALLERS);

  constructor(deps: ExtensionsDeps) {
    this.#deps = deps;
  }

  /**
   * The one template that announces an extension whose last segment is the first one of the method: `com.acme/widgets` for
   * `widgets/list`. Undefined for none and for several: servers are never tried to find out.
   */
  ownerOfMethod(method: string, owner: Owner): string | undefined {
    const [first = ''] = method.split('/', 1);
    const [only, ...others] = method.includes('/') ? this.#announcing(first, owner) : [];
    return others.length === 0 ? only : undefined;
  }

  /** The skills of all templates. One that does not answer is left out. */
  async listSkills({ owner }: Client, toTemplate: ToTemplate): Promise<JsonText> {
    const templates = this.#announcing(SKILLS, owner);
    const found = await Promise.all(templates.map((template) => skillsOf(template, toTemplate)));
    const owners = new Map<string, readonly string[]>();
    found.forEach((skills, index) => {
      for (const name of new Set(skills.map(({ uri }) => nameIn(String(uri)))))
        owners.set(name, [...(owners.get(name) ?? []), templates[index] ?? '']);
    });
    this.#owners.set(owner.id, owners);
    const skills = found.flatMap((each, index) =>
      each.map((skill) => shownOf(skill, templates[index] ?? '', owners)),
    );
    return JsonText.ofValue({ skills: skills.slice(0, MAX_SKILLS) });
  }

  /** The template of a URI of a skill, and the URI there. Reads the skills at most once. Undefined for any other URI. */
  async targetOf(uri: string, client: Client, toTemplate: ToTemplate): Promise<SkillTarget | undefined> {
    if (!uri.startsWith(SCHEME) || this.#announcing(SKILLS, client.owner).length === 0) return undefined;
    const known = this.#known(uri, client.owner);
    if (known !== undefined) return known;
    await this.listSkills(client, toTemplate);
    return this.#known(uri, client.owner);
  }

  #known(uri: string, owner: Owner): SkillTarget | undefined {
    const owners = this.#owners.get(owner.id);
    if (owners === undefined) return undefined;
    const present = this.#announcing(SKILLS, owner);
    const [template = '', ...rest] = uri.slice(SCHEME.length).split('/');
    const own = SCHEME + rest.join('/');
    // A listed URI wins over a composed one.
    const [only, ...others] = owners.get(template) ?? [];
    if (only !== undefined && others.length === 0 && present.includes(only)) return { template: only, uri };
    if (!present.includes(template) || owners.get(nameIn(own))?.includes(template) !== true) return undefined;
    return { template, uri: own, show: (result) => shownOf(result, template, owners) };
  }

  #announcing(extension: string, owner: Owner): readonly string[] {
    const { templates, backendsOf } = this.#deps;
    return templates(owner).filter((template) =>
      backendsOf(template)
        .peers(owner)
        .some(
          ({ capabilities: { extensions } }) => isJsonObject(extensions) && announces(extensions, extension),
        ),
    );
  }
}

export interface SkillTarget {
  readonly template: string;
  readonly uri: string;
  /** What the template answers, with the URIs that clients know. Undefined where they are the same. */
  readonly show?: (result: JsonObject) => JsonObject;
}

function announces(extensions: JsonObject, name: string): boolean {
  return Object.keys(extensions).some((id) => id.slice(id.lastIndexOf('/') + 1) === name);
}

/** All pages. Those before a page that fails. */
async function skillsOf(template: string, toTemplate: ToTemplate): Promise<JsonObject[]> {
  const skills: JsonObject[] = [];
  let cursor: string | undefined;
  let bytes = 0;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const { result, size } = await resultOf(toTemplate(template, { method: 'skills/list', params }));
    bytes += size;
    if (!Array.isArray(result?.skills) || bytes > MAX_BYTES) break;
    skills.push(...result.skills.filter(isSkill));
    const { nextCursor } = result;
    if (
      typeof nextCursor !== 'string' ||
      nextCursor === '' ||
      nextCursor === cursor ||
      skills.length > MAX_SKILLS
    )
      break;
    cursor = nextCursor;
  }
  return skills.slice(0, MAX_SKILLS);
}

/** One that is nested deeper cannot be serialized again. */
function isSkill(listed: unknown): listed is JsonObject {
  return isJsonObject(listed) && typeof listed.uri === 'string' && !isDeeper(listed, LIMITS.nestingDepth);
}

async function resultOf(
  answers$: Observable<Answer>,
): Promise<{ readonly result?: JsonObject; readonly size: number }> {
  try {
    const { event } = await firstValueFrom(answers$.pipe(filter(isFinalAnswer)));
    if (event.kind !== 'result') return { size: 0 };
    const result = parsedResult(event.result, 'exactValue');
    return isJsonObject(result) ? { result, size: event.result.bytes.length } : { size: 0 };
  } catch {
    return { size: 0 }; // a template that does not answer has no skills now
  }
}

/** `skill://<name>/...` */
function nameIn(uri: string): string {
  return uri.startsWith(SCHEME) ? (uri.slice(SCHEME.length).split('/', 1)[0] ?? '') : '';
}

/** With the id of the template in each URI of a skill that another template has, too: all URIs of a skill are translated together. */
function shownOf(value: JsonObject, template: string, owners: SkillOwners): JsonObject {
  const shown = Object.entries(value).map(([key, each]) => {
    if (key === 'uri' && typeof each === 'string') return [key, shownUri(each, template, owners)] as const;
    if (Array.isArray(each))
      return [
        key,
        each.map((item) => (isJsonObject(item) ? shownOf(item, template, owners) : item)),
      ] as const;
    return [
      key,
      isJsonObject(each) && key !== 'frontmatter' ? shownOf(each, template, owners) : each,
    ] as const;
  });
  return Object.fromEntries(shown);
}

function shownUri(uri: string, template: string, owners: SkillOwners): string {
  const isShared = (owners.get(nameIn(uri))?.length ?? 0) > 1;
  return isShared ? `${SCHEME}${template}/${uri.slice(SCHEME.length)}` : uri;
}
