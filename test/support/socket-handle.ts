/** Makes a socket's handle that listens nowhere, and knows whether it was closed. */
export function fakeHandle () {
  const handle = { isClosed: false, fd: -1, onconnection () {}, listen: () => 0, close () {
    handle.isClosed = true
  }, ref () {}, unref () {}, hasRef: () => true }
  return handle
}
