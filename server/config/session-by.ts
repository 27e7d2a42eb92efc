type Config = Pick<import('./config.ts').Config, 'dispatch' | 'sticky'>

/**
 * By what the sessions of an app stay with a worker; the first of these counts that a request has.
 * @returns null: they do not, or by the address of the client
 */
export function sessionBy (
  { dispatch, sticky: { by: { header, cookie, query, path } } }: Config
): { header: string | null, cookie: string | null, query: string | null, path: string | null } | null {
  const by = { header: header ?? null, cookie: cookie ?? null, query: query ?? null, path: path ?? null }
  return dispatch === 'sticky' && Object.values(by).some((name) => name !== null) ? by : null
}

/** @returns in words, by what clients stay with a worker; null: by nothing */
export function stickyBy (config: Config): string | null {
  const { header, cookie, query, path } = sessionBy(config) ?? {}
  const names = [header && `the header ${header}`, cookie && `the cookie ${cookie}`,
    query && `the parameter ${query} of the URL`, path && `the path ${path}`].filter(Boolean)
  if (names.length > 0) return names.join(', else ')
  return config.dispatch === 'sticky' ? 'the address of the client' : null
}
