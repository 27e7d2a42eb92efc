const HIDDEN = '…'
/** Secrets are longer, or have more than small letters. */
const PLAIN_PART = /^(?:[a-z]{1,10}|v\d)?$/
const NAMED_VALUE = /^[\w.-]{1,30}(?==)/

/**
 * Hides what may be secret in an address: user, password, the values of the query, and each part of the path that is no
 * plain word, as many services put a secret there.
 */
export function shownUrl (url: string) {
  const { protocol, username, password, host, pathname, search, hash } = new URL(url)
  const user = username || password ? `${HIDDEN}@` : ''
  const path = pathname.split('/').map((part) => PLAIN_PART.test(part) ? part : HIDDEN).join('/')
  return `${protocol}//${user}${host}${path}${
    search && `?${search.slice(1).split('&').map(shownParameter).join('&')}`
  }${hash && `#${HIDDEN}`}`
}

/** A name without a value may be a secret too. */
function shownParameter (parameter: string) {
  const [name] = NAMED_VALUE.exec(parameter) ?? []
  return name === undefined ? HIDDEN : `${name}=${HIDDEN}`
}
