/** @typedef {Pick<import('./config.js').Config, 'dispatch' | 'sticky'>} Config */

/**
 * By what the sessions of an app stay with a worker; the first of these counts that a request has.
 * @param {Config} config
 * @returns {{ header: string | null, cookie: string | null, query: string | null, path: string | null } | null} null: they do not, or by the address of the client
 */
export function sessionBy ({ dispatch, sticky: { by: { header, cookie, query, path } } }) {
  const by = { header: header ?? null, cookie: cookie ?? null, query: query ?? null, path: path ?? null }
  return dispatch === 'sticky' && Object.values(by).some((name) => name !== null) ? by : null
}

/** @param {Config} config @returns {string | null} in words, by what clients stay with a worker; null: by nothing */
export function stickyBy (config) {
  const { header, cookie, query, path } = sessionBy(config) ?? {}
  const names = [header && `the header ${header}`, cookie && `the cookie ${cookie}`, query && `the parameter ${query} of the URL`, path && `the path ${path}`].filter(Boolean)
  if (names.length > 0) return names.join(', else ')
  return config.dispatch === 'sticky' ? 'the address of the client' : null
}
