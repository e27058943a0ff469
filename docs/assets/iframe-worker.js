// A page opened as a file (file://) may start no Worker. This runs the script of the search in a
// hidden frame instead, behind the same four members of Worker that the search uses.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      const script = new URL(url, location.href).href.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
      // `__index` is the search's data, written into a script by the site's build.
      this.frame.srcdoc = `<script>
        window.importScripts = (...urls) => Promise.all(urls.map(one => new Promise((done, failed) => {
          const added = document.createElement("script");
          added.src = one; added.onload = done; added.onerror = failed;
          document.head.append(added);
        })));
        window.postMessage = message => parent.dispatchEvent(
          new MessageEvent("message", {data: message, source: window}));
        <\/script><script src="${script}"><\/script>`;
      this.hear = event => {
        if (event.source !== this.frame.contentWindow) return;
        const heard = new MessageEvent("message", {data: event.data});
        this.dispatchEvent(heard);
        if (this.onmessage) this.onmessage(heard);
      };
      addEventListener("message", this.hear);
      this.frame.onload = () => {
        this.ready = true;
        this.waiting.splice(0).forEach(one => this.send(one));
      };
      document.body.append(this.frame);
    }
    send(data) {
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}));
    }
    postMessage(data) {
      if (this.ready) this.send(data); else this.waiting.push(data);
    }
    terminate() {
      removeEventListener("message", this.hear);
      this.frame.remove();
    }
  };
}
