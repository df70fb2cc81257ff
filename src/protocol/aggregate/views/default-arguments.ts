// Arguments of a tool that a view sets: clients do not see them, and may not send them.

import { type JsonFields, type JsonObject, JsonText } from '../../../domain/json/json.ts';
import { hasField, withFields } from '../../../domain/json/json-fields.ts';
import { caseless } from '../../../domain/text.ts';

/**
 * The arguments of one tool that a view sets. The arguments of a call are scanned, not parsed, and keep their bytes.
 */
export class DefaultArguments {
  readonly values: JsonObject;
  readonly #names: ReadonlySet<string>;
  readonly #caseless: ReadonlySet<string>;
  /** The fields as JSON, without braces. */
  readonly #fields: Buffer;

  constructor(values: JsonObject) {
    this.values = values;
    this.#names = new Set(Object.keys(values));
    this.#caseless = new Set(Object.keys(values).map(caseless));
    this.#fields = Buffer.from(JSON.stringify(values).slice(1, -1));
  }

  /** An input schema without these arguments. */
  without(schema: JsonObject): JsonObject {
    const { properties, required, ...others } = schema;
    const isOther = (name: unknown) => typeof name !== 'string' || !this.#names.has(name);
    const left = Object.entries(Object(properties)).filter(([name]) => isOther(name));
    const needed = Array.isArray(required) ? required.filter(isOther) : [];
    return {
      ...others,
      ...(properties === undefined ? {} : { properties: Object.fromEntries(left) as JsonObject }),
      ...(needed.length === 0 ? {} : { required: needed }),
    };
  }

  /** The arguments of a call with these added. A text says why they are refused: a sentence. */
  addedTo(given: JsonFields[string]): JsonFields[string] | string {
    if (this.#names.size === 0) return given;
    if (given === undefined || given === null) return this.values;
    const text = given instanceof JsonText ? given : JsonText.ofValue(given);
    const sent = hasField(text.bytes, this.#caseless);
    if (sent === undefined) return 'The arguments are not an object.';
    if (sent !== '') return `The argument ${JSON.stringify(sent)} is set by the gateway: leave it out.`;
    return JsonText.ofBytes(withFields(text.bytes, this.#fields));
  }
}
