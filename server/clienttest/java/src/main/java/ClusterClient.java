import java.util.List;

/** A client library in its cluster mode, behind its generic call. Each answer is a reply, or the exception in its place. */
interface ClusterClient extends AutoCloseable {
    /** Sends one command, or several as a pipeline. */
    List<Object> send(List<List<String>> commands);

    /** Whether the exception is an error reply, which its message then is. */
    boolean isReply(Exception failure);

    @Override
    void close();
}
