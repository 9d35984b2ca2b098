# The server in a container. Its version is that of package.json: the image installs the packed package.
#
#   docker build -t colibri-mcp .
#   docker run -i --rm --user "$(id -u):$(id -g)" -v "$PWD:/workspace" -v "$HOME/.config/colibri:/config/colibri" colibri-mcp
FROM node:24-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts && npm rebuild esbuild
COPY . .
RUN npm run build && npm pack --ignore-scripts --pack-destination /tmp

FROM node:24-slim
COPY --from=build /tmp/colibri-mcp-*.tgz /tmp/
RUN npm install --global --ignore-scripts /tmp/colibri-mcp-*.tgz \
  && rm -r /tmp/colibri-mcp-*.tgz /root/.npm \
  && install -d -o node -g node -m 700 /workspace /config /config/colibri
# The project and the keys come from outside; keys never go into the image.
ENV COLIBRI_WORKSPACE=/workspace XDG_CONFIG_HOME=/config
WORKDIR /workspace
USER node
ENTRYPOINT ["colibri"]
CMD ["serve-mcp"]
