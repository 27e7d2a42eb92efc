/**
 * @param {{ host?: string, port?: number, path?: string }} place  a host and a port, or the path of a Unix socket
 * @returns {string} for people
 */
export function placeText ({ host = '', port, path }) {
  return path ?? (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)
}
