// The admin panel is not served, as it would take minutes to build.
module.exports = () => ({ serveAdminPanel: false, autoOpen: false, apiToken: { salt: 'salt' }, transfer: { token: { salt: 'salt' } }, auth: { secret: 'secret' }, secrets: { encryptionKey: 'for the gallery' } })
