// Describes the faults of a document as lines for operators: the path in the document, then the rule, but never a value, which may be
// a secret. Requests get issues in the form of pydantic instead (validation.ts).

import type { TLocalizedValidationError as Failure } from 'typebox/error';

/** The path of a member: `templates.demo`, `instances[0]`, `env["MY KEY"]`. */
export function pathTo(parent: string, member: string | number): string {
  if (typeof member === 'number') return `${parent}[${member}]`;
  if (!/^[\w-]+$/.test(member)) return `${parent}[${JSON.stringify(member)}]`;
  return parent === '' ? member : `${parent}.${member}`;
}

/** One line per fault. `locate` returns the path of a field at the top level; default: its name. */
export function issuesOf(
  failures: readonly Failure[],
  locate: (field: string) => string = (field) => pathTo('', field),
): string[] {
  return failures.flatMap((failure) => {
    const [field, ...deeper] = pointerSegments(failure.instancePath);
    const path = field === undefined ? '' : deeper.reduce(memberOf, locate(field));
    switch (failure.keyword) {
      case 'boolean':
        return []; // the second report of a field that additionalProperties reports already
      case 'additionalProperties':
        return failure.params.additionalProperties.map((name) =>
          field === undefined ? `${locate(name)}: unknown field` : `${pathTo(path, name)}: is no valid name`,
        );
      case 'required':
        return failure.params.requiredProperties.map((name) => {
          return `${field === undefined ? locate(name) : pathTo(path, name)}: is missing`;
        });
      case 'enum':
        return [`${path}: must be one of ${failure.params.allowedValues.join(', ')}`];
      default:
        return [path === '' ? failure.message : `${path}: ${failure.message}`];
    }
  });
}

function memberOf(parent: string, segment: string): string {
  return pathTo(parent, /^\d+$/.test(segment) ? Number(segment) : segment);
}

/** The segments of a JSON pointer, without its escapes. */
export function pointerSegments(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}
