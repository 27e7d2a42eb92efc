/** `place`: a host and a port, or the path of a Unix socket @returns for people */
export function placeText ({ host = '', port, path }: { host?: string, port?: number, path?: string }): string {
  return path ?? (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)
}
