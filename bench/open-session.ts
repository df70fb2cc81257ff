// Opens one legacy MCP session over HTTP, as every client begins.

/** What `initialize` is asked with. It declares nothing, so that a shared process serves it. */
export const initializeBody = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1.0.0' },
  },
});

/** Initializes, and resolves with the headers of everything that follows. */
export async function openSession(
  url: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Record<string, string>> {
  const post = (text: string, more: Readonly<Record<string, string>>) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...headers,
        ...more,
      },
      body: text,
    });
  const opened = await post(body, {});
  const id = opened.headers.get('mcp-session-id');
  if (!opened.ok || id === null)
    throw new Error(`${url} opens no session: ${opened.status} ${await opened.text()}`);
  await opened.text();
  const session = { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' };
  const said = await post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }), session);
  await said.text();
  return session;
}
