// The result of a call: its texts and images rendered, and all of it as JSON.

import { plural, shortened } from '../format.ts';
import type { JsonObject } from '../mcp.ts';

/** A page with 100,000 of them does not answer for minutes. */
const MAX_PARTS = 200;
/** Half a million lines stop the page for 30 s. */
const MAX_CHARACTERS = 100_000;
/** The depth of the deepest part: that of a message, its content, and the resource in it. */
const DEEPEST = 2;

export function Result({ result }: { readonly result: JsonObject }) {
  const { content, contents, messages, structuredContent, isError } = result;
  const parts = [...listOf(content), ...listOf(contents), ...listOf(messages).map(messagePart)];
  return (
    <div class={isError === true ? 'stack result failed' : 'stack result'}>
      {isError === true && <p class="strong tone-bad">The tool reports an error.</p>}
      {parts.slice(0, MAX_PARTS).map((part, index) => (
        <Part key={index} part={part} />
      ))}
      {parts.length > MAX_PARTS && <p class="muted">{plural(parts.length - MAX_PARTS, 'more part')}</p>}
      {structuredContent !== undefined && (
        <details open={parts.length === 0}>
          <summary>Structured content</summary>
          <Output text={JSON.stringify(structuredContent, null, 2)} />
        </details>
      )}
      <details>
        <summary>Full result as JSON</summary>
        <Output text={JSON.stringify(result, null, 2)} />
      </details>
    </div>
  );
}

export function Output({ text }: { readonly text: string }) {
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by the keyboard */}
      <pre class="output" tabIndex={0}>
        {shortened(text, MAX_CHARACTERS)}
      </pre>
      {text.length > MAX_CHARACTERS && (
        <p class="muted">{plural(text.length - MAX_CHARACTERS, 'more character')}</p>
      )}
    </>
  );
}

function Part({ part, depth = 0 }: { readonly part: JsonObject; readonly depth?: number }) {
  const { type, text, data, mimeType, resource, uri, name, blob, role } = part;
  if (role !== undefined && depth < DEEPEST) {
    return (
      <div>
        <p class="label">{written(role)}</p>
        <Part part={Object(part.content)} depth={depth + 1} />
      </div>
    );
  }
  if (type === 'image') {
    const kind = written(mimeType);
    return <img src={`data:${kind};base64,${written(data)}`} alt={`Result, ${kind}`} />;
  }
  if (type === 'resource' && depth < DEEPEST) return <Part part={Object(resource)} depth={depth + 1} />;
  if (typeof text === 'string') return <Output text={pretty(text)} />;
  const bytes = written(blob ?? data ?? '').length * 0.75;
  if (bytes > 0) return <p class="muted">{`${written(mimeType ?? type)}, ${Math.round(bytes)} bytes`}</p>;
  return <p>{written(name ?? uri ?? type)}</p>;
}

/** The text of a value of a server, which may be an object without a text, for which `String` would throw. */
function written(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

function messagePart(message: JsonObject): JsonObject {
  return { role: message.role, content: message.content };
}

/** JSON in a text is easier to read with line breaks; long numbers would not stay exact. */
function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text) || /\d{16}/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // it only looks like JSON
  }
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map((each) => Object(each)) : [];
}
